"""An ALBEF-style JSON list of somebody else's machine to one with your paths.

The lists that ALBEF's and X-VLM's authors give out name pictures by their own absolute paths. This
rewrites the paths, puts captions of the same picture into one record, and leaves out pictures that
you lack (counted):

    python tools/dataset_converters/albef_paths.py coco.json --out data/albef/coco.json \\
        --pattern '.*/(train|val)2014/' --replacement 'coco/\\g<1>2014/' --root data/pretrain
"""

import argparse
import re
from pathlib import Path

from xmodal.datasets.albef_writer import write_albef_json
from xmodal.datasets.json_stream import stream_json_list
from xmodal.engine.errors import run_or_explain

IMAGE_KEYS = ('image', 'image_path')


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('file', type=Path, help='list of {image or image_path, caption, …}')
    parser.add_argument('--out', type=Path, required=True, help='file to write')
    parser.add_argument('--root', type=Path, required=True, help='folder new paths are below')
    parser.add_argument('--pattern', default='', help='regular expression found in a path')
    parser.add_argument('--replacement', default='', help='what stands there instead')
    return parser.parse_args()


def gather(file: Path, pattern: str, replacement: str) -> dict[str, list[str]]:
    """Captions by new path, in the order of the file."""
    captions: dict[str, list[str]] = {}
    for number, item in enumerate(stream_json_list(file)):
        key = next((key for key in IMAGE_KEYS if key in item), None)
        if key is None or 'caption' not in item:
            raise ValueError(
                f'{file}, item {number} has keys {sorted(item)}, expected "caption" and one of '
                f'{IMAGE_KEYS}'
            )
        found = [item['caption']] if isinstance(item['caption'], str) else item['caption']
        captions.setdefault(re.sub(pattern, replacement, item[key], count=1), []).extend(found)
    return captions


def main() -> None:
    """Converts a file."""
    args = parse_args()
    captions = gather(args.file, args.pattern, args.replacement)
    there = (
        {'image': path, 'caption': found}
        for path, found in captions.items()
        if (args.root / path).exists()
    )
    try:
        count = write_albef_json(args.out, there, len(captions))
    except ValueError as error:
        example = args.root / next(iter(captions), '')
        raise ValueError(
            f'none of the pictures is there, for instance {example}: check --root, --pattern and '
            '--replacement'
        ) from error
    print(f'{args.out}: {count} pictures; {len(captions) - count} are not below {args.root}')


if __name__ == '__main__':
    run_or_explain(main)
