"""Exports a trained model: to a folder, to the Hugging Face hub, or to ONNX.

Usage::

    python tools/export.py work_dirs/pretrain_shapes --to folder --out models/acerpe
    python tools/export.py work_dirs/pretrain_shapes --to hub --out user/acerpe-shapes
    python tools/export.py acerpe-shapes --to onnx --out models/onnx --int8
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from xmodal.engine.errors import run_or_explain
from xmodal.engine.imports import quick_imports


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        'run', help='folder of a run, folder of a model, or the name of a model (docs/zoo.md)'
    )
    parser.add_argument('--to', choices=['folder', 'hub', 'onnx'], required=True)
    parser.add_argument(
        '--out', required=True, help='folder to write; with --to hub the name, USER/NAME'
    )
    parser.add_argument(
        '--checkpoint',
        type=Path,
        help='of the run, or the weights of the name (default: the last one, or those of the name)',
    )
    parser.add_argument(
        '--metrics',
        type=Path,
        help='for the model card: what tools/test.py --metrics wrote (default: of the last test '
        'with --work-dir RUN/test)',
    )
    parser.add_argument('--half', action='store_true', help='folder, hub: weights in float16')
    parser.add_argument('--int8', action='store_true', help='onnx: also with weights in 8 bits')
    parser.add_argument('--private', action='store_true', help='hub: a private repository')
    args = parser.parse_args()
    for option, target in (('half', 'folder or hub'), ('int8', 'onnx'), ('private', 'hub')):
        if getattr(args, option) and args.to not in target:
            parser.error(f'--{option} is for --to {target}')
    return args


def main() -> None:
    """Exports."""
    args = parse_args()
    if args.to != 'hub' and Path(args.out).is_dir() and any(Path(args.out).iterdir()):
        raise FileExistsError(f'--out {args.out} has files already: give another folder')
    # These take seconds to import; a wrong command line is told at once.
    with quick_imports():
        import torch

        from xmodal.apis import push_to_hub, save_pretrained
        from xmodal.engine.sources import custom_modules
        from xmodal.export.run import read_run

    run = read_run(args.run, args.checkpoint, args.metrics)
    if args.to == 'onnx':
        from xmodal.export.onnx import export_onnx

        for file in export_onnx(run.model, args.out, args.int8):
            print(f'{file}: {file.stat().st_size / 1e6:.1f} MB')
        return
    dtype = torch.float16 if args.half else None
    if args.to == 'folder':
        folder = save_pretrained(run.model, run.config, args.out, dtype, run.card)
        first = ''.join(f'import {name}; ' for name in custom_modules(run.config))
        print(f"{folder}: {first}xmodal.get_model('{folder}') builds it")
        return
    with TemporaryDirectory() as folder:
        card = {'title': args.out, **run.card}
        save_pretrained(run.model, run.config, folder, dtype, card)
        print(push_to_hub(folder, args.out, args.private))


if __name__ == '__main__':
    run_or_explain(main)
