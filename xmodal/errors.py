"""Errors of configs and of files, the hints in their messages, and whose code raised an error."""

import difflib
import traceback
from collections.abc import Iterable
from importlib.util import find_spec


class ConfigError(ValueError):
    """A config that cannot run. The message says which key is wrong and what to do."""


class FileError(ValueError):
    """A file that cannot be read; the message names it."""


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Returns the known name that is most similar to ``name``, or None."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=cutoff)), None)


def no_key(key: str, known: Iterable[str]) -> str:
    """Says that a key is unknown, with the nearest known key or else all of them."""
    near = nearest(key, known)
    hint = f", did you mean '{near}'?" if near else f'; it takes {", ".join(known)}'
    return f"takes no key '{key}'{hint}"


def not_installed(name: str) -> str:
    """Says that the package of a type such as ``mmpretrain.ResNet`` is absent; nothing if not."""
    package, dot, _ = name.partition('.')
    is_absent = package and dot and find_spec(package) is None
    return f": the package '{package}' is not installed." if is_absent else ''


def shortened(value: object) -> str:
    """A value as a config has it, cut when it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f'{text[:59]}…'


def origin(error: BaseException) -> str:
    """Returns the package whose code raised an error; ``importlib`` does not count."""
    frames = traceback.walk_tb(error.__traceback__)
    modules = [frame.f_globals.get('__name__', '') for frame, _ in frames]
    module = next((name for name in reversed(modules) if 'importlib' not in name), '')
    return module.partition('.')[0]
