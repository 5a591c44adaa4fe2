"""Reading tables of images, .csv and .tsv, as people and their programs write them."""

import csv
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TextIO

from xmodal.fields import shorten
from xmodal.files import SEPARATORS, FileError

_MAX_ROW = 1 << 20  # characters: a table whose quotes never close is one row


def read_rows(
    table: Path, image_column: str, *others: str, advice: str
) -> Iterator[tuple[int, dict[str, str | None]]]:
    """The rows below the header line of a table in UTF-8, each with the number of its last line.

    A row with fewer cells than the header has None in their place.

    Args:
        table: its suffix says what separates cells, of other files a comma. A header without that,
            but with semicolons, is of Excel where the comma is in decimal numbers.
        image_column: of the paths, of which none may be empty.
        *others: further columns that the table must have.
        advice: what to do where a column has another name.

    Raises:
        FileError: when a column is missing or there several times, when quotes are wrong, and when
            a row has too many cells or no image.
    """
    delimiter = SEPARATORS.get(table.suffix.lower(), ',')
    with open(table, newline='', encoding='utf-8-sig') as file:
        lines = _Lines(file)
        header = next(lines, '')
        if ';' in header and delimiter not in header:
            delimiter = ';'
        name = {',': 'comma', '\t': 'tab', ';': 'semicolon'}[delimiter]
        # Strict: a quote that is never closed would make all rows that follow one cell.
        reader = csv.DictReader(chain([header], lines), delimiter=delimiter, strict=True)
        for column in (image_column, *others):
            if (reader.fieldnames or []).count(column) > 1:
                raise FileError(f'{table} has several columns {column!r}: rename all but one')
            if column not in (reader.fieldnames or ()):
                raise FileError(
                    f'{table} has no column {column!r}, its header is '
                    f'{shorten(reader.fieldnames)}: {advice}, and separate cells by a {name}'
                )
        for row in _rows(reader, table):
            lines.left = _MAX_ROW
            if None in row:  # where the reader puts cells beyond the header
                raise FileError(
                    f'{table}, line {reader.line_num} has {len(row) - 1 + len(row[None])} cells '
                    f'and the header {len(reader.fieldnames)}, beyond it {shorten(row[None])}: '
                    f'quote cells that contain a {name}, "like{delimiter} this"'
                )
            if not (row[image_column] or '').strip():
                raise FileError(f'{table}, line {reader.line_num} names no image')
            yield reader.line_num, row


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
