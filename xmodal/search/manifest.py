"""The manifest of an index: its model, its source, and the types of its parts."""

from pathlib import Path

from xmodal.errors import FileError
from xmodal.files import read_json

MANIFEST = 'manifest.json'


def read_manifest(folder: Path) -> dict:
    """What an index says about itself.

    Raises:
        FileNotFoundError: when the folder has no index.
        FileError: when it is damaged.
    """
    file = Path(folder) / MANIFEST
    if not file.exists():
        raise FileNotFoundError(f'{folder} has no index: make one with `xmodal search index`')
    manifest = read_json(file)
    if not isinstance(manifest, dict) or not {'fingerprint', 'engine'} <= manifest.keys():
        raise FileError(f'{file} is no manifest of an index: make the index anew')
    return manifest


def written_at(folder: Path) -> int:
    """When the manifest was written, in nanoseconds; 0 where there is none."""
    file = Path(folder) / MANIFEST
    return file.stat().st_mtime_ns if file.exists() else 0
