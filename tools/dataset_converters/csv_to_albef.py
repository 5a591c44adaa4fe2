"""Converts a table of images and captions to ALBEF's format.

The table (.csv or .tsv) has a header line; the rows of an image become its captions:

    image,caption
    cats/001.jpg,"a cat, asleep on a keyboard"

Rows without a caption are dropped and counted.

    python tools/dataset_converters/csv_to_albef.py captions.csv --root data/mine \\
        --out data/mine/albef/train.json
"""

import argparse
from pathlib import Path

from xmodal.datasets.albef_writer import write_albef_json
from xmodal.datasets.image_table import read_rows
from xmodal.engine.command_line import ShowDefaults
from xmodal.engine.errors import run_or_explain
from xmodal.files import FileError, reads, require_new


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('table', type=Path, help='.csv or .tsv with a header line')
    parser.add_argument(
        '--root', type=Path, required=True, help='folder that the paths are relative to'
    )
    parser.add_argument('--out', type=Path, required=True, help='file to write')
    parser.add_argument('--image-column', default='image', help='column of the paths')
    parser.add_argument('--caption-column', default='caption', help='column of the captions')
    return parser.parse_args()


@reads('a table in UTF-8 with a header line')
def gather(
    table: Path, image_column: str, caption_column: str
) -> tuple[dict[str, list[str]], list[int]]:
    """Captions by image, in the order of the table, and the lines without a caption."""
    captions: dict[str, list[str]] = {}
    lines_without: list[int] = []
    advice = 'name the columns with --image-column and --caption-column'
    for line, row in read_rows(table, image_column, caption_column, advice=advice):
        if row[caption_column] and row[caption_column].strip():
            path = Path(row[image_column]).as_posix()  # a/./1.jpg is a/1.jpg
            captions.setdefault(path, []).append(row[caption_column])
        else:
            lines_without.append(line)
    return captions, lines_without


def main() -> None:
    """Converts a table; all its images must exist."""
    args = parse_args()
    require_new('--out', args.out)
    captions, lines_without = gather(args.table, args.image_column, args.caption_column)
    missing = [file for path in captions if not (file := args.root / path).exists()]
    if missing:
        listed = ''.join(f'\n  {file}' for file in missing[:10])
        raise ValueError(
            f'{len(missing)} of {len(captions)} images of {args.table}, whose paths are relative '
            f'to --root {args.root}, do not exist:{listed}'
        )
    if not captions:
        raise FileError(f'{args.table} has no row with a caption')
    records = ({'image': path, 'caption': texts} for path, texts in captions.items())
    count = write_albef_json(args.out, records, len(captions))
    print(f'{args.out}: {count} images, {sum(map(len, captions.values()))} captions')
    if lines_without:
        num_rows = len(lines_without)
        listed = ', '.join(map(str, lines_without[:10])) + (', …' if num_rows > 10 else '')
        print(f'dropped: {num_rows} row(s) of {args.table} without a caption (line {listed})')


if __name__ == '__main__':
    run_or_explain(main)
