"""Your own pictures with a table of captions to ALBEF's format.

The table (.csv, or .tsv) has a header line; rows of the same picture become its captions:

    image,caption
    cats/001.jpg,a cat asleep on a keyboard

    python tools/dataset_converters/csv_to_albef.py captions.csv --root data/mine \\
        --out data/mine/albef/train.json
"""

import argparse
import csv
from pathlib import Path

from xmodal.datasets.albef_writer import write_albef_json


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('table', type=Path, help='.csv or .tsv with a header line')
    parser.add_argument('--root', type=Path, required=True, help='folder the paths are below')
    parser.add_argument('--out', type=Path, required=True, help='file to write')
    parser.add_argument('--image-column', default='image')
    parser.add_argument('--caption-column', default='caption')
    return parser.parse_args()


def gather(table: Path, image_column: str, caption_column: str) -> dict[str, list[str]]:
    """Captions by picture, in the order of the table."""
    captions: dict[str, list[str]] = {}
    with open(table, newline='', encoding='utf-8-sig') as file:
        reader = csv.DictReader(file, delimiter='\t' if table.suffix == '.tsv' else ',')
        for column in (image_column, caption_column):
            if column not in (reader.fieldnames or ()):
                raise SystemExit(
                    f'{table} has no column {column!r}, its header is {reader.fieldnames}: name '
                    'the columns with --image-column and --caption-column'
                )
        for row in reader:
            if row[caption_column]:
                captions.setdefault(row[image_column], []).append(row[caption_column])
    return captions


def main() -> None:
    """Converts a table; all its pictures must be there."""
    args = parse_args()
    captions = gather(args.table, args.image_column, args.caption_column)
    missing = [path for path in captions if not (args.root / path).exists()]
    if missing:
        listed = ''.join(f'\n  {path}' for path in missing[:10])
        raise SystemExit(
            f'{len(missing)} of {len(captions)} pictures of {args.table} are not below '
            f'{args.root}:{listed}'
        )
    records = ({'image': path, 'caption': found} for path, found in captions.items())
    count = write_albef_json(args.out, records, len(captions))
    print(f'{args.out}: {count} pictures, {sum(map(len, captions.values()))} captions')


if __name__ == '__main__':
    main()
