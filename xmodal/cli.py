"""The command ``xmodal``: each subcommand is one of the tools.

Nothing here imports more than the standard library, so that ``xmodal --help`` is quick.
"""

import argparse
import sys
from importlib.util import module_from_spec, spec_from_file_location

from xmodal.errors import nearest
from xmodal.packaged import ROOT
from xmodal.version import __version__

# A subcommand is one line: its name, and its file in tools/, whose first line describes it.
GROUPS = {
    'train and test': {
        'train': 'train.py',
        'test': 'test.py',
        'ablate': 'ablate.py',
        'search': 'search.py',
        'zoo': 'zoo.py',
        'export': 'export.py',
        'info': 'info.py',
    },
    'make and convert data': {
        'make-shapes': 'make_shapes.py',
        'csv-to-albef': 'dataset_converters/csv_to_albef.py',
        'parquet-to-albef': 'dataset_converters/parquet_to_albef.py',
        'albef-paths': 'dataset_converters/albef_paths.py',
        'img2dataset': 'dataset_converters/img2dataset.py',
        'karpathy': 'dataset_converters/karpathy.py',
        'flickr8k': 'dataset_converters/flickr8k.py',
        'visual-genome': 'dataset_converters/visual_genome.py',
        'vqa-split': 'dataset_converters/vqa_split.py',
        'vqa-answers': 'dataset_converters/vqa_answers.py',
        'lxmert-answers': 'dataset_converters/lxmert_answers.py',
        'lxmert-pretrain': 'dataset_converters/lxmert_pretrain.py',
        'caption-questions': 'dataset_converters/caption_questions.py',
        'nlvr-boxes': 'dataset_converters/nlvr_boxes.py',
        'nlvr-statements': 'dataset_converters/nlvr_statements.py',
        'class-names': 'dataset_converters/class_names.py',
        'build-vocab': 'dataset_converters/build_vocab.py',
        'build-index': 'dataset_converters/build_index.py',
        'regions': 'dataset_converters/regions.py',
        'extract-regions': 'dataset_converters/extract_regions.py',
    },
    "convert other projects' weights": {
        'convert-albef': 'model_converters/albef.py',
        'convert-lxmert': 'model_converters/lxmert.py',
        'convert-sgraf': 'model_converters/sgraf.py',
        'convert-data2vec2': 'model_converters/data2vec2.py',
        'final-weights': 'model_converters/final_weights.py',
    },
    'look at models and runs': {
        'report': 'analysis/report.py',
        'compare': 'analysis/compare.py',
        'ensemble': 'analysis/ensemble.py',
        'evaluate-vqa': 'analysis/evaluate_vqa.py',
        'anchor-statistics': 'analysis/anchor_statistics.py',
        'deletion-curves': 'analysis/deletion_curves.py',
        'audit-dataset': 'analysis/audit_dataset.py',
        'draw-sizes': 'analysis/draw_sizes.py',
        'get-params': 'analysis/get_params.py',
        'get-flops': 'analysis/get_flops.py',
        'scaling': 'analysis/scaling.py',
        'zoo-table': 'analysis/zoo_table.py',
        'check-figures': 'analysis/check_figures.py',
    },
    'measure': {
        'benchmark-pretrain': 'analysis/benchmark_pretrain.py',
        'benchmark-data': 'analysis/benchmark_data.py',
        'benchmark-index': 'analysis/benchmark_index.py',
        'benchmark-all': 'analysis/benchmark_all.py',
        'benchmark-cascade': 'analysis/benchmark_cascade.py',
        'benchmark-encoders': 'analysis/benchmark_encoders.py',
        'benchmark-lxmert': 'analysis/benchmark_lxmert.py',
        'benchmark-onnx': 'analysis/benchmark_onnx.py',
        'benchmark-regions': 'analysis/benchmark_regions.py',
        'benchmark-retrieval': 'analysis/benchmark_retrieval.py',
        'benchmark-scaling': 'analysis/benchmark_scaling.py',
        'benchmark-search': 'analysis/benchmark_search.py',
        'benchmark-similarity': 'analysis/benchmark_similarity.py',
        'benchmark-temde': 'analysis/benchmark_temde.py',
        'simulate-verdicts': 'analysis/simulate_verdicts.py',
        'soak': 'analysis/soak.py',
    },
}
COMMANDS = {name: file for group in GROUPS.values() for name, file in group.items()}


def overview() -> str:
    """All subcommands in their groups, each with the first line of its tool."""
    lines = []
    for heading, commands in GROUPS.items():
        lines += ['', f'{heading}:']
        for name, file in commands.items():
            with open(ROOT / 'tools' / file, encoding='utf-8') as tool:
                first_line = tool.readline().strip().strip('"')
            lines.append(f'  {name:<21} {first_line}')
    return '\n'.join(lines)


def parse_args() -> argparse.Namespace:
    """Reads the command line: a subcommand, and what its tool gets."""
    parser = argparse.ArgumentParser(
        prog='xmodal',
        usage='xmodal COMMAND [arguments]; xmodal COMMAND --help describes them',
        description='A toolbox for cross-modal (image-text) learning.',
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    parser.add_argument('command', help=argparse.SUPPRESS)
    parser.add_argument('arguments', nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument('-h', '--help', action='store_true', help='list the commands')
    parser.add_argument('--version', action='version', version=f'xmodal {__version__}')
    if sys.argv[1:] in ([], ['-h'], ['--help']):
        print(f'{parser.format_help()}{overview()}')
        parser.exit()
    args = parser.parse_args()
    if args.command not in COMMANDS:
        near = nearest(args.command, COMMANDS)
        hint = f"did you mean '{near}'?" if near else '`xmodal --help` lists them'
        parser.error(f"there is no command '{args.command}', {hint}")
    return args


def main() -> None:
    """Runs the tool of a subcommand as ``python tools/….py`` does: as the main module.

    Ctrl-C, also while the tool imports, ends it with the status of a shell and no traceback. A
    training sees to it by itself (:class:`xmodal.engine.hooks.PreemptionHook`).
    """
    args = parse_args()
    sys.argv = [f'xmodal {args.command}', *args.arguments]
    file = ROOT / 'tools' / COMMANDS[args.command]
    spec = spec_from_file_location('__main__', file)
    tool = module_from_spec(spec)
    tool.__spec__ = None  # a script has none, and workers import it by its path
    sys.modules['__main__'] = tool
    try:
        spec.loader.exec_module(tool)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
