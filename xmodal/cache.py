"""The folder of what can be made again: downloads, converted weights, indexes of data sets."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """``XMODAL_HOME``, or ``xmodal`` in the user's cache."""
    if home := os.environ.get('XMODAL_HOME'):
        return Path(home).expanduser()
    return Path(os.environ.get('XDG_CACHE_HOME') or '~/.cache').expanduser() / 'xmodal'
