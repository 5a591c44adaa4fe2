"""Records of files whose fields are checked as they are read: the one place that does it."""

import math
from collections.abc import Collection, Iterator
from pathlib import Path
from reprlib import Repr
from string import Formatter
from typing import Any

from xmodal.files import read_json

_REQUIRED: Any = object()
_REPR = Repr()
_INT64 = range(-(2**63), 2**63)


class Fields:
    """The fields of a JSON object, each with the type that a reader expects.

    A field with a ``default`` may be missing or null. All methods raise ValueError, which says
    where the field is, what it is and what was expected; readers add the file.

    Args:
        item: the object.
        where: its place in the record, ``images[3]``; '' for the record itself.
    """

    __slots__ = ('_item', '_where')

    def __init__(self, item: object, where: str = '') -> None:
        if not isinstance(item, dict):
            raise ValueError(f'{where or "it"} is {shorten(item)}, expected an object')
        self._item, self._where = item, where

    def __iter__(self) -> Iterator[str]:
        return iter(self._item)

    def __contains__(self, key: str) -> bool:
        return self._item.get(key) is not None

    def get(self, key: str) -> Any:
        """A field as it is, None where it is missing."""
        return self._item.get(key)

    def error(self, key: str, expected: str) -> ValueError:
        """The error of a field that is not what was expected."""
        if key not in self._item:
            place = f' in {self._where}' if self._where else ''
            return ValueError(f'key {key!r} is missing{place}, expected {expected}')
        value = shorten(self._item[key])
        return ValueError(f'{self._place(key)} is {value}, expected {expected}')

    def text(self, key: str, default: Any = _REQUIRED) -> str:
        """A text, which may be empty."""
        value = self._item.get(key)
        if isinstance(value, str):
            return value
        return self._default(key, default, 'a text')

    def name(self, key: str, default: Any = _REQUIRED) -> str:
        """A text that is not empty: a path or a name."""
        value = self._item.get(key)
        if isinstance(value, str) and value.strip():
            return value
        return self._default(key, default, 'a text that is not empty')

    def integer(self, key: str, default: Any = _REQUIRED, low: int = _INT64.start) -> int:
        """A whole number of 64 bits, at least ``low``."""
        value = self._item.get(key)
        if type(value) is int and low <= value < _INT64.stop:
            return value
        at_least = '' if low == _INT64.start else f' of at least {low}'
        return self._default(key, default, f'a whole number{at_least} in 64 bits')

    def id(self, key: str, default: Any = _REQUIRED) -> int | str:
        """A whole number or a text that identifies something."""
        value = self._item.get(key)
        if (isinstance(value, str) and value.strip()) or (type(value) is int and value in _INT64):
            return value
        return self._default(key, default, 'a whole number or a text')

    def number(self, key: str, low: float = -math.inf, high: float = math.inf) -> float:
        """A finite number from ``low`` to ``high``."""
        value = self._item.get(key)
        if is_number(value) and low <= value <= high:
            return value
        limits = '' if low == -math.inf else f' from {low:g} to {high:g}'
        raise self.error(key, f'a number{limits}')

    def flag(self, key: str, default: Any = _REQUIRED) -> bool:
        """True or false."""
        value = self._item.get(key)
        return value if isinstance(value, bool) else self._default(key, default, 'true or false')

    def choice(self, key: str, options: Collection[str]) -> str:
        """One of some texts."""
        value = self._item.get(key)
        if isinstance(value, str) and value in options:
            return value
        raise self.error(key, ' or '.join(map(repr, options)))

    def items(self, key: str, default: Any = _REQUIRED) -> list:
        """A list of anything."""
        value = self._item.get(key)
        return value if isinstance(value, list) else self._default(key, default, 'a list')

    def texts(self, key: str, default: Any = _REQUIRED, or_one: bool = False) -> list[str]:
        """A list of texts; with ``or_one`` a text alone is a list of one."""
        value = self._item.get(key)
        if or_one and isinstance(value, str):
            return [value]
        if isinstance(value, list) and all(isinstance(text, str) for text in value):
            return value
        return self._default(key, default, f'{"a text or " if or_one else ""}a list of texts')

    def objects(self, key: str, default: Any = _REQUIRED) -> Iterator['Fields']:
        """A list of objects, one after another."""
        for index, item in enumerate(self.items(key, default)):
            yield Fields(item, f'{self._place(key)}[{index}]')

    def object(self, key: str, default: Any = _REQUIRED) -> 'Fields':
        """An object; the default is that of its content."""
        value = self._item.get(key)
        if not isinstance(value, dict):
            value = self._default(key, default, 'an object')
        return Fields(value, self._place(key))

    def scores(self) -> dict[str, float]:
        """All fields, each a number from 0 to 1."""
        return {key: float(self.number(key, 0, 1)) for key in self}

    def format(self, template: str, **others: object) -> str:
        """``template`` with other values, and fields that are whole numbers or texts."""
        keys = {key for _, key, _, _ in Formatter().parse(template) if key} - others.keys()
        return template.format(**others, **{key: self.id(key) for key in keys})

    def _place(self, key: str) -> str:
        """Where a field is, ``images[3].id``."""
        return f'{self._where}.{key}' if self._where else key

    def _default(self, key: str, default: Any, expected: str) -> Any:
        """The default of a field that is missing or null; any other value is an error."""
        if default is _REQUIRED or self._item.get(key) is not None:
            raise self.error(key, expected)
        return default


def read_object(file: str | Path) -> Fields:
    """The content of a JSON file that is one object.

    Raises:
        FileError: when the file is no JSON.
        ValueError: when it is no object.
    """
    return Fields(read_json(file))


def as_objects(items: object) -> Iterator[Fields]:
    """The objects of a list."""
    if not isinstance(items, list):
        raise ValueError(f'it is {shorten(items)}, expected a list')
    for index, item in enumerate(items):
        yield Fields(item, f'[{index}]')


def is_number(value: object) -> bool:
    """Whether a value is a finite number; true and false are none."""
    if type(value) is int:
        return abs(value) < 1e300
    return type(value) is float and math.isfinite(value)


def shorten(value: object, length: int = 40) -> str:
    """The ``repr`` of a value, cut off."""
    # Long and deep values are cut before they become a text.
    text = repr(value[: length + 1]) if isinstance(value, str) else _REPR.repr(value)
    return text if len(text) <= length else f'{text[:length]}…'
