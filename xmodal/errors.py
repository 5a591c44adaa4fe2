"""The error of a config, and the hints in its message."""

import difflib
from collections.abc import Iterable


class ConfigError(ValueError):
    """A config that cannot run. The message says which key is wrong and what to do."""


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Returns the known name that is most similar to ``name``, or None."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=cutoff)), None)


def no_key(key: str, known: Iterable[str]) -> str:
    """Says that a key is unknown, with the nearest known key or else all of them."""
    near = nearest(key, known)
    hint = f", did you mean '{near}'?" if near else f'; it takes {", ".join(known)}'
    return f"takes no key '{key}'{hint}"
