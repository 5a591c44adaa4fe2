"""Runs the benchmarks of speed, and writes docs/performance.md's tables.

    python tools/analysis/benchmark_all.py --peers PEERS --images FOLDER
    python tools/analysis/benchmark_all.py --peers PEERS --only pretrain lxmert

Where there is a GPU, it runs those of the GPU, whose names begin with ``gpu``; else the others.

PEERS has checkouts of the peers' public code: ALBEF (github.com/salesforce/ALBEF) and SGRAF
(github.com/Paranioar/SGRAF). LXMERT runs beside that of transformers. Without PEERS, benchmarks
that have a literal version of their own run beside that. Figures of benchmarks that do not run now
stay as they are, as long as the JSON file has them.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from rich.console import Console

from xmodal.benchmark import make_parser
from xmodal.benchmark.page import fill
from xmodal.engine.errors import run_or_explain
from xmodal.errors import ConfigError
from xmodal.files import read_json, write_json

FOLDER = Path(__file__).parent
PEERS, IMAGES = 'PEERS', 'FOLDER'
ALBEF_STEP = 'benchmark_pretrain.py configs/acerpe/albef_4m.py --batch-size 2 --repeats 5 --amp'
POSITION = 'benchmark_pretrain.py configs/acerpe/pretrain_4m.py --batch-size 2'
RETRIEVAL = (
    'benchmark_retrieval.py configs/acerpe/albef_4m.py --image-size 224 --images 12 --captions 4 '
    '--topk 4'
)
SIMILARITY = 'benchmark_similarity.py --captions 1000 --repeats 5 --step-repeats 5'
LAYERS = (
    'Block BertLayer FusionLayer.attend_self FusionLayer.attend_cross '
    'FusionLayer.cross_attention.project NoPosition.relate'
)
GPU_ALBEF = 'benchmark_pretrain.py configs/acerpe/albef_4m.py --batch-size 64 --repeats 5 --amp'
GPU_STEP = 'benchmark_pretrain.py configs/acerpe/pretrain_4m.py --repeats 11 --amp'
GPU_LXMERT = (
    'benchmark_lxmert.py configs/lxmert/pretrain_released.py --batch-size 256 --amp '
    '--compile LxmertBackbone.fuse_batch --repeats 11'
)
GPU_SIMILARITY = (
    'benchmark_similarity.py --images 200 --captions 1000 --repeats 5 --step-repeats 0 --coco'
)
BENCHMARKS = {
    'pretrain': f'{ALBEF_STEP} --peer {PEERS}/ALBEF',
    'lxmert': 'benchmark_lxmert.py configs/lxmert/pretrain_released.py --repeats 5',
    'similarity': f'{SIMILARITY} --peer {PEERS}/SGRAF',
    'retrieval': f'{RETRIEVAL} --peer {PEERS}/ALBEF',
    'data': f'benchmark_data.py configs/acerpe/albef_4m.py --images {IMAGES} --peer {PEERS}/ALBEF',
    'encoders': 'benchmark_encoders.py --repeats 5',
    'position': f'{POSITION} --repeats 5',
    'position_bf16': f'{POSITION} --repeats 9 --amp',
    'sizes': 'benchmark_scaling.py sizes configs/acerpe/pretrain_4m.py --repeats 2',
    'sketches': 'benchmark_scaling.py sketches configs/temde/saf_temde_f30k.py',
    'processes': 'benchmark_scaling.py processes configs/acerpe/pretrain_shapes.py --batch-size 8',
    'processes_4m': 'benchmark_scaling.py processes configs/acerpe/pretrain_4m.py --batch-size 1',
    'gpu_similarity': f'{GPU_SIMILARITY} --peer {PEERS}/SGRAF',
    'gpu_lxmert': GPU_LXMERT,
    'gpu_position': f'{GPU_STEP} --batch-size 64 --compile {LAYERS}',
    'gpu_position_large': f'{GPU_STEP} --batch-size 128 --compile {LAYERS}',
    'gpu_position_eager': f'{GPU_STEP} --batch-size 64',
    'gpu_pretrain': f'{GPU_ALBEF} --compile {LAYERS} --peer {PEERS}/ALBEF',
}


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('--peers', type=Path, help='folder with the checkouts')
    parser.add_argument('--images', type=Path, help='folder of photographs, for data')
    parser.add_argument(
        '--only', nargs='+', choices=BENCHMARKS, help='default: all that are for this machine'
    )
    parser.add_argument('--json', type=Path, default=Path('docs/performance.json'))
    parser.add_argument('--page', type=Path, default=Path('docs/performance.md'))
    return parser.parse_args()


def command(name: str, peers: Path | None, images: Path | None) -> list[str] | None:
    """The command line of a benchmark; None where it needs a folder that is not given."""
    words = BENCHMARKS[name].split()
    if peers is None and '--peer' in words:
        place = words.index('--peer')
        del words[place : place + 2]
    if images is None and IMAGES in words:
        return None
    folders = {f'{PEERS}/': f'{peers}/', IMAGES: f'{images}'}
    for symbol, folder in folders.items():
        words = [word.replace(symbol, folder) for word in words]
    return words


def chosen_names(only: list[str] | None, has_gpu: bool) -> list[str]:
    """The benchmarks to run.

    Raises:
        ConfigError: when one of a GPU is asked for where there is none.
    """
    if only is None:
        return [name for name in BENCHMARKS if name.startswith('gpu') == has_gpu]
    if not has_gpu and (of_gpu := [name for name in only if name.startswith('gpu')]):
        raise ConfigError(f'--only {of_gpu[0]}: it is for a GPU, and none is visible')
    return only


def run(words: list[str]) -> dict:
    """Runs a benchmark in a process of its own, whose memory nothing else has filled.

    Raises:
        RuntimeError: when it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, 'figures.json')
        script, *options = words
        call = [sys.executable, str(FOLDER / script), *options, '--json', str(file)]
        if subprocess.run(call, check=False).returncode:
            raise RuntimeError(f'{" ".join(words)} has failed, see above')
        return read_json(file)


def main() -> None:
    """Runs, and writes after each benchmark what there is."""
    args = parse_args()
    names = chosen_names(args.only, torch.cuda.is_available())
    known = read_json(args.json) if args.json.is_file() else {}
    console, failed = Console(), []
    for number, name in enumerate(names, 1):
        console.rule(f'{number} of {len(names)}: {name}')
        words = command(name, args.peers, args.images)
        if words is None:
            if args.only:
                raise ConfigError(f'{name} needs --images FOLDER')
            console.print('left out: it needs --images FOLDER')
            continue
        try:
            content = run(words)
        except RuntimeError as error:
            console.print(str(error))
            failed.append(name)
            continue
        has_peer = args.peers is not None or '--peer' not in BENCHMARKS[name]
        shown = BENCHMARKS[name] if has_peer else ' '.join(words)
        known[name] = content | {'command': f'python tools/analysis/{shown}'}
        ordered = {one: known[one] for one in BENCHMARKS if one in known}
        write_json(args.json, ordered, indent=1)
        fill(args.page, ordered)
    if failed:
        raise RuntimeError(f'failed: {", ".join(failed)}; the others are in {args.page}')


if __name__ == '__main__':
    run_or_explain(main)
