"""Converts Parquet files with images inside, as of the Hugging Face hub, to ALBEF's format.

A row has the bytes of an image, bare or as {bytes, path}, and captions in one or several columns,
each a text or a list of texts. Equal images become one image with the captions of all their rows.
The images are written to the folder images below --root:

    python tools/dataset_converters/parquet_to_albef.py data/mine/train-*.parquet \\
        --root data/mine --out data/mine/train.json

Rows without a caption or a readable image are dropped and counted. A second run, as after a stop,
keeps the images that are there.
"""

import argparse
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath

from PIL import Image
from tqdm import tqdm

from xmodal.datasets.albef_writer import write_albef_json
from xmodal.datasets.image_file import IMAGE_SUFFIXES
from xmodal.engine.command_line import ShowDefaults
from xmodal.engine.errors import run_or_explain
from xmodal.fields import shorten
from xmodal.files import FileError, atomic_write, reads, require_new

_ROWS = 64  # read at once: a thousand photographs of a megabyte would be a gigabyte


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('tables', type=Path, nargs='+', metavar='FILE.parquet')
    parser.add_argument(
        '--root', type=Path, required=True, help='folder that the written paths are relative to'
    )
    parser.add_argument('--out', type=Path, required=True, help='file to write')
    parser.add_argument('--image-column', default='image', help='column of the images')
    parser.add_argument(
        '--caption-columns', nargs='+', default=['caption'], help='columns of the captions'
    )
    parser.add_argument(
        '--where', metavar='COLUMN=VALUE', help='keep these rows alone, such as split=train'
    )
    args = parser.parse_args()
    if args.where and '=' not in args.where:
        parser.error(f'--where {args.where}: expected COLUMN=VALUE, such as split=train')
    return args


@reads('a Parquet file')
def rows(table: Path, columns: Sequence[str]) -> Iterator[dict]:
    """The rows of a table, a few at a time; ValueError when a column is missing."""
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise RuntimeError(
            f"Parquet needs pyarrow: pip install 'xmodal[parquet]' ({error})"
        ) from None
    with ParquetFile(table) as file:
        for column in columns:
            if column not in (names := file.schema_arrow.names):
                raise FileError(
                    f'{table} has no column {column!r}, but {shorten(names)}: name the columns '
                    'with --image-column, --caption-columns and --where'
                )
        with tqdm(total=file.metadata.num_rows, desc=table.name, unit='rows', delay=1) as bar:
            for batch in file.iter_batches(_ROWS, columns=list(dict.fromkeys(columns))):
                yield from batch.to_pylist()
                bar.update(len(batch))


def captions_of(row: dict, columns: Sequence[str], place: str) -> list[str]:
    """The texts in some columns of a row that are not empty.

    Raises:
        ValueError: when a cell has something else than texts.
    """
    captions = []
    for column in columns:
        texts = row[column] if isinstance(row[column], list) else [row[column]]
        if any(not isinstance(text, str | None) for text in texts):
            found = shorten(row[column])
            raise FileError(f'{place}, column {column!r} is {found}, expected a text or texts')
        captions += [text for text in texts if text and text.strip()]
    return captions


def content_of(cell: object, place: str) -> tuple[bytes | None, str | None]:
    """The bytes of an image and its path, if the cell has them.

    Raises:
        ValueError: when the cell names an image rather than having its bytes.
    """
    is_pair = isinstance(cell, dict)
    content, path = (cell.get('bytes'), cell.get('path')) if is_pair else (cell, None)
    if isinstance(content, str) or (content is None and path):
        raise FileError(
            f'{place} is {shorten(content or path)}, expected the bytes of an image. Of paths make '
            'a table for csv-to-albef, images of URLs are downloaded by img2dataset'
        )
    return content, path


class ImageWriter:
    """Writes the images of all tables, each once.

    Args:
        root: their folder is ``root/images``.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.by_content: dict[bytes, str] = {}
        self.names: set[str] = set()

    def write(self, content: bytes, name: str | None, row_name: str) -> str | None:
        """Writes an image, unless an equal one is there; its path below the root.

        Args:
            content: the file.
            name: its path in the table, if there is one.
            row_name: a name without suffix, if there is no path or another image has it.

        Returns:
            None for something else than an image.

        Raises:
            FileExistsError: when another file has the name.
        """
        digest = sha256(content).digest()
        if path := self.by_content.get(digest):
            return path
        suffix = suffix_of(content)
        if suffix is None:
            return None
        path = _clean(name) if name else None
        if path is None or path in self.names:
            path = f'images/{row_name}{suffix}'
        file = self.root / path
        if not file.exists():
            with atomic_write(file) as unfinished:
                unfinished.write_bytes(content)
        elif file.read_bytes() != content:
            raise FileExistsError(f'{file} is another image: give another --root, or remove it')
        self.names.add(path)
        self.by_content[digest] = path
        return path


def suffix_of(content: bytes) -> str | None:
    """The suffix of an image's format; None where no format has such a header."""
    if content.startswith(b'\xff\xd8'):  # also the JPEGs of cameras that Pillow calls MPO
        return '.jpg'
    try:
        with Image.open(io.BytesIO(content)) as image:
            return f'.{image.format.lower()}'
    except Exception:  # each format has its own ways to fail
        return None


def _clean(name: str) -> str | None:
    """A path below ``images`` for one of a table; None for one that leads out of it."""
    path = PurePosixPath(name.replace('\\', '/'))
    if path.is_absolute() or '..' in path.parts or path.suffix.lower() not in IMAGE_SUFFIXES:
        return None
    return f'images/{path}'


class Pairs:
    """The pairs of all tables: the captions by image, and how many rows were left out.

    Args:
        images: writes the images.
        image_column, caption_columns: names of the columns.
        where: a column and the value of the rows that are kept; None keeps all.

    Attributes:
        captions: texts by the path of an image, in the order of the tables.
        dropped: number of rows by what they lack.
        others: values of the column of ``where`` in the rows that are not kept.
    """

    def __init__(
        self,
        images: ImageWriter,
        image_column: str,
        caption_columns: Sequence[str],
        where: tuple[str, str] | None,
    ) -> None:
        self.images, self.where = images, where
        self.image_column, self.caption_columns = image_column, caption_columns
        self.captions: dict[str, list[str]] = {}
        self.dropped: Counter[str] = Counter()
        self.others: set[str] = set()

    def read(self, table: Path) -> None:
        """Adds the rows of a file, whose images are written."""
        columns = [self.image_column, *self.caption_columns, *(self.where or ())[:1]]
        for number, row in enumerate(rows(table, columns)):
            if self.where and str(row[self.where[0]]) != self.where[1]:
                self.others.add(str(row[self.where[0]]))
            elif problem := self._add(row, table, number):
                self.dropped[problem] += 1

    def _add(self, row: dict, table: Path, number: int) -> str | None:
        """Adds a row; what it lacks, if anything."""
        place = f'{table}, row {number}'
        texts = captions_of(row, self.caption_columns, place)
        content, name = content_of(row[self.image_column], f'{place}, column {self.image_column!r}')
        if not texts:
            return 'without a caption'
        if not content:
            return 'without an image'
        path = self.images.write(content, name, f'{table.stem}_{number:07d}')
        if path is None:
            return 'with bytes that are no image'
        self.captions.setdefault(path, []).extend(texts)
        return None


def main() -> None:
    """Converts tables."""
    args = parse_args()
    require_new('--out', args.out)
    where = tuple(args.where.split('=', 1)) if args.where else None
    pairs = Pairs(ImageWriter(args.root), args.image_column, args.caption_columns, where)
    for table in args.tables:
        pairs.read(table)
    if not pairs.captions:
        found = f', and {where[0]} is {shorten(sorted(pairs.others))}' if pairs.others else ''
        raise FileError(
            f'{", ".join(map(str, args.tables[:3]))}: no row has an image and a caption{found}'
        )
    records = ({'image': path, 'caption': texts} for path, texts in pairs.captions.items())
    count = write_albef_json(args.out, records, len(pairs.captions))
    print(f'{args.out}: {count} images, {sum(map(len, pairs.captions.values()))} captions')
    for problem, number in pairs.dropped.items():
        print(f'dropped: {number} row(s) {problem}')


if __name__ == '__main__':
    run_or_explain(main)
