"""Converts splits of Karpathy's files to ALBEF's format, for pre-training on COCO.

    python tools/dataset_converters/karpathy.py data/karpathy/dataset_coco.json \\
        --split train restval --root data/pretrain --image-folder coco --out data/albef/coco.json

Retrieval configs read Karpathy's files directly and need no conversion.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from xmodal.datasets.albef_writer import write_albef_json
from xmodal.datasets.captions import read_karpathy
from xmodal.engine.errors import run_or_explain
from xmodal.files import FileError, reads


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('file', type=Path, help='dataset_coco.json, dataset_flickr30k.json, …')
    parser.add_argument('--split', nargs='+', required=True, help='train, restval, val, test')
    parser.add_argument(
        '--root', type=Path, required=True, help='folder that paths are relative to'
    )
    parser.add_argument('--image-folder', default='', help='folder of the images, below --root')
    parser.add_argument('--out', type=Path, required=True, help='file to write')
    return parser.parse_args()


@reads('Karpathy\'s {"images": [{"split", "filename", "sentences": [{"raw"}, …]}, …]}')
def records(
    file: Path, splits: list[str], root: Path, folder: str, missing: list[Path]
) -> Iterator[dict]:
    """A record for each image that exists; the others are added to ``missing``."""
    for entry in read_karpathy(file, splits):
        path = Path(folder, entry.image)
        if (root / path).exists():
            yield {
                'image': path.as_posix(),
                'caption': entry.captions,
                'image_id': entry.image_id,
            }
        else:
            missing.append(root / path)


def main() -> None:
    """Converts the splits of a file."""
    args = parse_args()
    missing: list[Path] = []
    try:
        converted = records(args.file, args.split, args.root, args.image_folder, missing)
        count = write_albef_json(args.out, converted)
    except FileError:
        raise
    except ValueError as error:
        example = f'; {missing[0]} does not exist: check --root, --image-folder' if missing else ''
        raise ValueError(f'{args.file}: {error}{example}') from error
    print(f'{args.out}: {count} images; {len(missing)} do not exist in {args.root}')


if __name__ == '__main__':
    run_or_explain(main)
