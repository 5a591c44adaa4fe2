"""Writing ALBEF's annotation format, for the converters."""

import json
from collections.abc import Iterable
from pathlib import Path

from tqdm import tqdm


def write_albef_json(path: Path, records: Iterable[dict], total: int | None = None) -> int:
    """Writes ``{image, caption, image_id?}`` records as a JSON list, one a line, as they come.

    Args:
        path: the new file; what it stands for is written beside it and moved there when whole.
        records: what is written.
        total: number of records, for the progress bar.

    Returns:
        The number of records.

    Raises:
        FileExistsError: when ``path`` is there already.
        ValueError: when there is no record.
    """
    if path.exists():
        raise FileExistsError(f'{path} is there already: move it away or choose another --out')
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f'.{path.name}.unfinished')
    count = 0
    with open(unfinished, 'w', encoding='utf-8') as file:
        for count, record in enumerate(tqdm(records, path.name, total, delay=1), 1):
            file.write('[\n' if count == 1 else ',\n')
            file.write(json.dumps(record, ensure_ascii=False))
        file.write('\n]\n')
    if not count:
        unfinished.unlink()
        raise ValueError(f'no record to write to {path}')
    unfinished.replace(path)
    return count
