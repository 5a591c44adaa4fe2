"""Writing ALBEF's annotation format, for the converters."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from tqdm import tqdm

from xmodal.files import atomic_open, require_new


class NoRecordError(ValueError):
    """A file that would be empty."""


def write_albef_json(path: Path, records: Iterable[dict], total: int | None = None) -> int:
    """Writes ``{image, caption, image_id?}`` records as a JSON list, one per line.

    Args:
        path: the new file. A temporary file in its folder is renamed to it when complete.
        records: the records, which are written one by one.
        total: number of records, for the progress bar.

    Returns:
        The number of records.

    Raises:
        FileExistsError: when ``path`` already exists.
        NoRecordError: when there is no record.
    """
    require_new('--out', path)
    count = 0
    with atomic_open(path) as file:
        for count, record in enumerate(tqdm(records, path.name, total, delay=1), 1):
            file.write('[\n' if count == 1 else ',\n')
            text = json.dumps(record, ensure_ascii=False)
            # Half an emoji has no UTF-8.
            file.write(text.encode(errors='backslashreplace').decode())
        if not count:
            raise NoRecordError(f'no record to write to {path}')
        file.write('\n]\n')
    return count


def path_below(folder: Path, root: Path) -> Path:
    """The path of a folder of images from ``--root``, as it is named or where its links lead.

    Raises:
        ValueError: when the root does not contain it.
    """
    for place in (os.path.abspath, os.path.realpath):
        if (path := Path(place(folder))).is_relative_to(place(root)):
            return path.relative_to(place(root))
    raise ValueError(f'--root={root} does not contain {folder}: paths are written relative to it')
