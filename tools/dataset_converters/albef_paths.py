"""Rewrites the image paths of an ALBEF-style JSON list from another machine.

The lists published by the authors of ALBEF and X-VLM name images by absolute paths on their
machines. This rewrites the paths, merges the captions of each image into one record, and drops
images that do not exist (the number is printed):

    python tools/dataset_converters/albef_paths.py coco.json --out data/albef/coco.json \\
        --pattern '.*/(train|val)2014/' --replacement 'coco/\\g<1>2014/' --root data/pretrain

--without leaves out the images that questions of VQA v2, as published or of LXMERT, are about, so
that no test asks about an image whose captions a model has seen.
"""

import argparse
import re
from pathlib import Path

from xmodal.datasets.albef_writer import NoRecordError, write_albef_json
from xmodal.datasets.coco_images import read_asked
from xmodal.datasets.json_stream import stream_json_list
from xmodal.engine.errors import run_or_explain
from xmodal.fields import Fields
from xmodal.files import reads, require_new

IMAGE_KEYS = ('image', 'image_path')


def expression(text: str) -> str:
    """The type of an argument that is a regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f'{text} is no regular expression: {error}') from error
    return text


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('file', type=Path, help='list of {image or image_path, caption, …}')
    parser.add_argument('--out', type=Path, required=True, help='file to write')
    parser.add_argument(
        '--root', type=Path, required=True, help='folder that the new paths are relative to'
    )
    parser.add_argument(
        '--pattern',
        type=expression,
        default='',
        help='regular expression that is replaced in a path',
    )
    parser.add_argument('--replacement', default='', help='replacement of the pattern')
    parser.add_argument(
        '--without',
        type=Path,
        help="questions of VQA v2: images whose file name ends with one of their images' numbers "
        'are left out',
    )
    args = parser.parse_args()
    try:
        re.sub(args.pattern, args.replacement, '')
    except (re.error, IndexError) as error:
        parser.error(f'--replacement {args.replacement}: {error}')
    return args


@reads('a list of {"image" or "image_path": …, "caption": text or texts, …}')
def gather(file: Path, pattern: str, replacement: str) -> dict[str, list[str]]:
    """Captions by new path, in the order of the file."""
    captions: dict[str, list[str]] = {}
    for index, item in enumerate(stream_json_list(file)):
        fields = Fields(item, f'item {index}')
        key = next((key for key in IMAGE_KEYS if key in fields), IMAGE_KEYS[0])
        path = re.sub(pattern, replacement, fields.name(key), count=1)
        captions.setdefault(path, []).extend(fields.texts('caption', or_one=True))
    return captions


def number(path: str) -> int | None:
    """The number that the file name of an image ends with."""
    digits = re.search(r'\d+$', Path(path).stem)
    return int(digits.group()) if digits else None


def main() -> None:
    """Converts a file."""
    args = parse_args()
    require_new('--out', args.out)
    captions = gather(args.file, args.pattern, args.replacement)
    if args.without:
        asked, read = read_asked(args.without), len(captions)
        captions = {path: x for path, x in captions.items() if number(path) not in asked}
        if not captions:
            raise ValueError(f'{args.without} asks about all {read} images')
        print(f'{args.without}: {read - len(captions)} images left out')
    records = (
        {'image': path, 'caption': texts}
        for path, texts in captions.items()
        if (args.root / path).exists()
    )
    try:
        count = write_albef_json(args.out, records, len(captions))
    except NoRecordError as error:
        example = args.root / next(iter(captions), '')
        raise ValueError(
            f'none of the images exists, for instance {example}: check --root, --pattern and '
            '--replacement'
        ) from error
    print(f'{args.out}: {count} images; {len(captions) - count} do not exist in {args.root}')


if __name__ == '__main__':
    run_or_explain(main)
