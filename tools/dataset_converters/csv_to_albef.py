"""Converts a table of images and captions to ALBEF's format.

The table (.csv or .tsv) has a header line; the rows of an image become its captions:

    image,caption
    cats/001.jpg,"a cat, asleep on a keyboard"

Rows without a caption are dropped and counted.

    python tools/dataset_converters/csv_to_albef.py captions.csv --root data/mine \\
        --out data/mine/albef/train.json
"""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from xmodal.datasets.albef_writer import write_albef_json
from xmodal.engine.command_line import ShowDefaults
from xmodal.engine.errors import run_or_explain
from xmodal.fields import shorten
from xmodal.files import SEPARATORS, FileError, reads, require_new

_MAX_ROW = 1 << 20  # characters: a table whose quotes never close is one row


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


class _Lines(Iterator[str]):
    """The lines of a table, of which a row may take several; a row has a limit.

    Args:
        file: the table.

    Attributes:
        left: characters that are left to the row; set anew after each.
    """

    def __init__(self, file: TextIO) -> None:
        self.file, self.left = file, _MAX_ROW

    def __next__(self) -> str:
        line = self.file.readline(self.left + 1)
        if not line:
            raise StopIteration
        self.left -= len(line)
        if self.left < 0:
            raise FileError(f'{self.file.name} has a row of more than {_MAX_ROW} characters')
        return line


@reads('a table in UTF-8 with a header line')
def gather(
    table: Path, image_column: str, caption_column: str
) -> tuple[dict[str, list[str]], list[int]]:
    """Captions by image, in the order of the table, and the lines without a caption.

    Raises:
        ValueError: when a column is missing, or a row has too many cells or no image.
    """
    captions: dict[str, list[str]] = {}
    lines_without: list[int] = []
    delimiter = SEPARATORS.get(table.suffix.lower(), ',')
    name = 'tab' if delimiter == '\t' else 'comma'
    with open(table, newline='', encoding='utf-8-sig') as file:
        lines = _Lines(file)
        # Strict: a quote that is never closed would make all rows that follow one caption.
        reader = csv.DictReader(lines, delimiter=delimiter, strict=True)
        for column in (image_column, caption_column):
            if (reader.fieldnames or []).count(column) > 1:
                raise FileError(f'{table} has several columns {column!r}: rename all but one')
            if column not in (reader.fieldnames or ()):
                raise FileError(
                    f'{table} has no column {column!r}, its header is '
                    f'{shorten(reader.fieldnames)}: name the columns with --image-column and '
                    f'--caption-column, and separate cells by a {name}'
                )
        for row in _rows(reader, table):
            lines.left = _MAX_ROW
            if None in row:  # where the reader puts cells beyond the header
                raise FileError(
                    f'{table}, line {reader.line_num} has {len(row) - 1 + len(row[None])} cells '
                    f'and the header {len(reader.fieldnames)}, beyond it {shorten(row[None])}: '
                    f'quote captions that contain a {name}, "like{delimiter} this"'
                )
            if not row[image_column]:
                raise FileError(f'{table}, line {reader.line_num} names no image')
            if row[caption_column] and row[caption_column].strip():
                path = Path(row[image_column]).as_posix()  # a/./1.jpg is a/1.jpg
                captions.setdefault(path, []).append(row[caption_column])
            else:
                lines_without.append(reader.line_num)
    return captions, lines_without


def _rows(reader: csv.DictReader, table: Path) -> Iterator[dict]:
    """The rows of a table; errors say where one begins that has wrong quotes."""
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise FileError(
                f'{table}, row of line {line}: {error}. A cell that begins with a quote ends with '
                'the next one, unless that is doubled: "a ""good"" dog"'
            ) from error
        yield row


def main() -> None:
    """Converts a table; all its images must exist."""
    args = parse_args()
    require_new('--out', args.out)
    captions, lines_without = gather(args.table, args.image_column, args.caption_column)
    missing = [path for path in captions if not (args.root / path).exists()]
    if missing:
        listed = ''.join(f'\n  {path}' for path in missing[:10])
        raise ValueError(
            f'{len(missing)} of {len(captions)} images of {args.table} do not exist in '
            f'{args.root}:{listed}'
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
