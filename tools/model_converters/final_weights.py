"""Makes the weights of a checkpoint those that one goes on with: LoRA merged, the average taken.

    python tools/model_converters/final_weights.py CONFIG work_dirs/mine/epoch_5.pth final.pth --ema

The result is a checkpoint of the config without its keys `lora` and without WeightEMAHook.
"""

import argparse
from pathlib import Path

from xmodal.engine.command_line import ShowDefaults
from xmodal.engine.errors import run_or_explain
from xmodal.engine.imports import quick_imports
from xmodal.files import require_new


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('config', help='config of the run')
    parser.add_argument('checkpoint', help='checkpoint of the run')
    parser.add_argument('out', type=Path, help='checkpoint to write; must not exist')
    parser.add_argument('--ema', action='store_true', help='take the averages of WeightEMAHook')
    return parser.parse_args()


def main() -> None:
    """Writes the final weights."""
    args = parse_args()
    require_new('out', args.out)
    # These take seconds to import; a wrong command line is told at once.
    with quick_imports():
        import torch

        from xmodal.checkpoint_file import read_checkpoint, write_checkpoint
        from xmodal.engine.checkpoint import load_weights
        from xmodal.engine.hooks.weight_ema import KEY
        from xmodal.engine.launch import read_config
        from xmodal.lora import merge_lora
        from xmodal.registry import MODELS, register_all

    register_all()
    model = MODELS.build(read_config(args.config, 'model').model)
    load_weights(model, args.checkpoint)
    if args.ema:
        average = read_checkpoint(args.checkpoint).get(KEY)
        if not average:
            raise ValueError(
                f'{args.checkpoint} has no averages: it was made without WeightEMAHook'
            )
        # By name: load_state_dict would also start a momentum teacher from the average.
        with torch.no_grad():
            for name, value in average['weights'].items():
                model.get_parameter(name).copy_(value)
    merge_lora(model)
    write_checkpoint(args.out, {'state_dict': model.state_dict()})
    print(f'{args.out}: {len(model.state_dict())} tensors')


if __name__ == '__main__':
    run_or_explain(main)
