"""Converts img2dataset's output (CC3M, CC12M, SBU) to ALBEF's format, or to lines of a config.

    python tools/dataset_converters/img2dataset.py data/pretrain/cc3m/train --root data/pretrain \\
        --out data/albef/cc3m_train.json

For shards (--output_format webdataset) no file is written; instead the lines of a config that
streams them are printed.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from xmodal.datasets.albef_writer import NoRecordError, path_below, write_albef_json
from xmodal.engine.errors import run_or_explain
from xmodal.fields import read_object
from xmodal.files import read_text, reads

CONFIG = """\
_base_ = 'pretrain_4m.py'
train_dataloader = dict(
    sampler=None,  # the shards shuffle themselves
    dataset=dict(
        _delete_=True,
        type='WebDatasetShards',
        shards='{shards}',  # {count} of them
        num_samples={total},
        pipeline={{{{_base_.train_pipeline}}}},
    ),
)"""
IMAGES = {'.jpg', '.jpeg', '.png', '.webp'}


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('folder', type=Path, help="img2dataset's --output_folder")
    parser.add_argument('--root', type=Path, help='folder that the written paths are relative to')
    parser.add_argument('--out', type=Path, help='file to write')
    return parser.parse_args()


def records(folder: Path, prefix: Path) -> Iterator[dict]:
    """A record for each image with a text file of the same name, sorted by name."""
    for subfolder in sorted(path for path in folder.iterdir() if path.is_dir()):
        for image in sorted(path for path in subfolder.iterdir() if path.suffix.lower() in IMAGES):
            text = image.with_suffix('.txt')
            if text.exists():
                path = prefix / image.relative_to(folder)
                yield {'image': path.as_posix(), 'caption': read_text(text).strip()}


@reads('statistics of img2dataset, {"successes": number, …}')
def read_successes(file: Path) -> int:
    """The number of downloaded pairs of a shard."""
    return read_object(file).integer('successes', low=0)


def successes(folder: Path) -> int | None:
    """Number of downloaded pairs according to img2dataset; None without its statistics."""
    statistics = sorted(folder.glob('*_stats.json'))
    return sum(map(read_successes, statistics)) or None


def main() -> None:
    """Converts a folder of files, or describes a folder of shards."""
    args = parse_args()
    total = successes(args.folder)
    if shards := sorted(args.folder.glob('*.tar')):
        first, last = shards[0].stem, shards[-1].stem
        is_whole = f'{first}{last}'.isdecimal() and int(last) - int(first) + 1 == len(shards)
        print(
            CONFIG.format(
                shards=f'{args.folder}/' + (f'{{{first}..{last}}}' if is_whole else '*') + '.tar',
                count=len(shards),
                total=total or 'None,  # not counted by img2dataset: fill in the number of pairs',
            )
        )
        return
    if args.out is None or args.root is None:
        raise ValueError(f'{args.folder} contains files, not shards: --root and --out are needed')
    prefix = path_below(args.folder, args.root)
    try:
        count = write_albef_json(args.out, records(args.folder, prefix), total)
    except NoRecordError as error:
        raise ValueError(
            f'no image with a .txt file of the same name in {args.folder}/*/: run img2dataset with '
            '--output_format files and --caption_col'
        ) from error
    print(f'{args.out}: {count} pairs')


if __name__ == '__main__':
    run_or_explain(main)
