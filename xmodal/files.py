"""Files that are whole or not there."""

import json
from pathlib import Path


def write_json(file: Path, content: object) -> None:
    """Writes a JSON file beside its place and moves it there; makes its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f'.{file.name}.unfinished')
    unfinished.write_text(json.dumps(content, indent=1))
    unfinished.replace(file)
