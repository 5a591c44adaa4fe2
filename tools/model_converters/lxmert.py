"""Converts weights of LXMERT to a checkpoint of this package, and back.

    python tools/model_converters/lxmert.py Epoch20_LXRT.pth lxmert.pth \\
        --config configs/lxmert/pretrain.py
    python tools/model_converters/lxmert.py work_dirs/pretrain/epoch_20.pth lxmert_hf.pth \\
        --export transformers

Then set `load_from = 'lxmert.pth'` in a config, or call `LxmertForPreTraining(…).load_state_dict`.
The input can have the names of the released files, with or without `module.`, or those of
`LxmertModel`, `LxmertForPreTraining` and `LxmertForQuestionAnswering` of transformers. The
`answer_list` of the config defines the order of the answers; it must belong to the weights.
"""

import argparse
from pathlib import Path

from xmodal.engine.errors import run_or_explain
from xmodal.engine.imports import quick_imports
from xmodal.files import require_new


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('source', type=Path, help='file of LXMERT, or a checkpoint to export')
    parser.add_argument('out', type=Path, help='file to write; must not exist')
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument('--config', help='config of the model that the weights are for')
    mode.add_argument(
        '--export',
        choices=['released', 'transformers'],
        help='export a checkpoint, with these names',
    )
    return parser.parse_args()


def main() -> None:
    """Converts a file and reports."""
    args = parse_args()
    require_new('out', args.out)
    # These take seconds to import; a wrong command line is told at once.
    with quick_imports():
        from xmodal.checkpoint_file import write_checkpoint
        from xmodal.converters import lxmert
        from xmodal.converters.converted import convert_for_config
        from xmodal.files import explain_errors

    if args.config:
        convert_for_config(lxmert.convert_file, args.source, args.out, args.config)
        return
    weights = lxmert.read_weights(args.source)
    with explain_errors(args.source, lxmert.LAYOUT):
        content, unused = lxmert.export(weights, args.export)
    write_checkpoint(args.out, content)
    print(f'not exported, no such name in LXMERT: {len(unused)}', *unused, sep='\n  ')


if __name__ == '__main__':
    run_or_explain(main)
