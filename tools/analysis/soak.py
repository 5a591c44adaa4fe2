"""Interrupts trainings of a config, resumes them, and compares them to the last bit.

    OMP_NUM_THREADS=1 python tools/analysis/soak.py configs/acerpe/pretrain_shapes.py --kills 50

The config is trained once without interruption. Then it is trained again in other folders, and
interrupted at random moments: by kill -9, SIGTERM and Ctrl-C; by kill -9 right before or after
each change of last_checkpoint and of a checkpoint, and in the middle of writing one; by a full
disk; and by damage to the newest checkpoint and to last_checkpoint. Each time --resume goes on. Of
all checkpoints, weights, optimizer, schedules and logged values must be those of the run without
interruption to the last bit, and so must the metrics at the end. If they are not, or a run would
not resume, the exit status is 1, and the folder of that run stays.

The trainings are shortened (--epochs, --iterations; 0 leaves the length of the config). They are
processes of tools/train.py, forked from one that has made the imports, which saves the seconds that
an interpreter takes to start. CPU and Linux only.
"""

import argparse
import os
from pathlib import Path

from rich.console import Console

from xmodal.benchmark import make_table
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.files import require_new
from xmodal.registry import register_all
from xmodal.soak import KINDS, NO_KIND, Outcome, Soak, Tool

TRAIN = Path(__file__).parents[1] / 'train.py'


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config', help='config file')
    parser.add_argument('--kills', type=at_least(1), default=50, help='interruptions (default: 50)')
    parser.add_argument('--kinds', nargs='+', choices=KINDS, default=list(KINDS), help='of them')
    parser.add_argument('--epochs', type=int, default=3, help='of a training (default: 3)')
    parser.add_argument('--iterations', type=int, default=8, help='of an epoch (default: 8)')
    parser.add_argument('--seed', type=int, default=0, help='of kinds and moments (default: 0)')
    parser.add_argument(
        '--work-dir', type=Path, help='new folder (default: work_dirs/soak_ and the name of CONFIG)'
    )
    parser.add_argument('--cfg-options', nargs='+', default=[], help='as of tools/train.py')
    args = parser.parse_args()
    args.work_dir = args.work_dir or Path('work_dirs', f'soak_{Path(args.config).stem}')
    return args


def training_options(args: argparse.Namespace) -> list[str]:
    """The --cfg-options of all trainings: short, and with a log of each step."""
    options = ['default_hooks.logger.interval=1']
    if args.epochs:
        options.append(f'train_cfg.max_epochs={args.epochs}')
    if args.iterations:
        options.append(f'train_dataloader.num_batch_per_epoch={args.iterations}')
    return [*options, *args.cfg_options]


def print_counts(soak: Soak, kinds: list[str]) -> bool:
    """Prints what came of the interruptions, failures last; whether all ended bit-identical."""
    table = make_table('interruptions', '', 'number', *(outcome.value for outcome in Outcome))
    rows = {kind: [kind] for kind in (*kinds, NO_KIND) if any(k == kind for k, _ in soak.counts)}
    for name, summed in (rows | {'all': list(rows)}).items():
        numbers = [sum(soak.counts[kind, outcome] for kind in summed) for outcome in Outcome]
        table.add_row(name, str(sum(numbers)), *map(str, numbers))
    Console(width=100).print(table)
    print(*soak.failures, sep='\n')
    return all(outcome is Outcome.IDENTICAL for _, outcome in soak.counts)


def main() -> None:
    """Interrupts and compares."""
    args = parse_args()
    require_new('--work-dir', args.work_dir)
    os.environ['CUDA_VISIBLE_DEVICES'] = ''  # a GPU's sums are not the same twice
    register_all()
    tool = Tool(TRAIN, args.config, training_options(args))
    soak = Soak(tool, args.work_dir, args.seed)
    scale = soak.train_reference()
    print(f'without interruption: {scale.seconds:.1f} s, checkpoints of {scale.checkpoint} bytes')
    soak.interrupt(args.kills, args.kinds)
    if not print_counts(soak, args.kinds):
        raise SystemExit(1)


if __name__ == '__main__':
    run_or_explain(main)
