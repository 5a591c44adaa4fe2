"""Wrong values of fields, and which of them each kind of field may take."""

import copy
import json
import math
import pickle
from functools import reduce

MISSING, ANOTHER, LISTED, TWICE = object(), object(), object(), object()

_TEXTS = {
    'empty text': '',
    'spaces': '  ',
    'word': 'x',
    'null byte': 'a\0b',
    'half a character': 'a\ud800',
    'long text': 'a' * 5000,
    'outside': '../../x',
    'device': '/dev/zero',
}
_NUMBERS = {
    'one': 1,
    'negative': -1,
    'fraction': 0.5,
    'not a number': math.nan,
    'infinity': -math.inf,
    'huge': 10**30,
    'huge fraction': 1e300,
}
_OTHERS = {
    'missing': MISSING,
    'null': None,
    'true': True,
    'no item': [],
    'numbers': [[1]],
    'nulls': [None] * 4,
    'no key': {},
    'object': {'a': 1},
    'deep': reduce(lambda inner, _: [inner], range(60), []),
    'in a list': LISTED,
    'twice in a list': TWICE,
    "another's": ANOTHER,
}
WRONG = {**_TEXTS, **_NUMBERS, **_OTHERS}

# The values that a reader may take, by kind of field; docs/data.md says why.
_OPTIONAL = {'missing', 'null'}
UNIQUE = set()
KNOWN = {"another's"}
CHOICE = KNOWN
TEXT = {*_TEXTS, "another's"}
OPTIONAL_TEXT = TEXT | _OPTIONAL
TEXTS = {'no item', "another's"}
NAME = TEXT - {'empty text', 'spaces'}
INTEGER = {'one', 'negative', "another's"}
ID = NAME | INTEGER
UNIQUE_ID = ID - {"another's"}
OPTIONAL_ID = UNIQUE_ID | _OPTIONAL
SCORE = {'one', 'fraction', "another's"}
SIZE = {'one', "another's"}
NUMBER = {'one', 'fraction', 'negative', "another's"}
LENGTH = {'one', 'fraction', "another's"}
LIST = {"another's"}
OBJECT = {"another's"}
RECORD = {'missing', "another's"}
FLAG = {'true', "another's"} | _OPTIONAL
# An image of a training set may be missing, which is logged; a test set needs all, and a device
# exists. Its pixels are looked at when it is read.
IMAGE = NAME - {'outside'}
TEST_IMAGE = {'device', "another's"}


def find(content, path):
    """The value at a path."""
    return reduce(lambda value, key: value[key], path, content)


def replace(content, path, value, another=None):
    """A copy of ``content`` with another value at a path, or without it."""
    if not path:
        return _special(value, content, None)
    content = copy.deepcopy(content)
    parent = find(content, path[:-1])
    if value is MISSING:
        del parent[path[-1]]
        return content
    parent[path[-1]] = _special(value, parent[path[-1]], another)
    return content


def _special(value, right, another):
    """A value that depends on the right one."""
    for key, made in ((ANOTHER, another), (LISTED, [right]), (TWICE, [right, right])):
        if value is key:
            return made
    return value


def paths(content, pattern):
    """The last path of a pattern such as ``images.*.id``, and the one of another record."""
    if not pattern:
        return (), None
    last, other = [], []
    for part in pattern.split('.'):
        value = find(content, last)
        keys = list(range(len(value))) if isinstance(value, list) else list(value)
        last.append(keys[-1] if part == '*' else int(part) if isinstance(value, list) else part)
        other.append(keys[0] if part == '*' else last[-1])
    try:
        return tuple(last), find(content, other)
    except (LookupError, TypeError):
        return tuple(last), None


def to_json(content):
    """One JSON text."""
    return json.dumps(content).encode()


def to_lines(content):
    """One JSON text a line."""
    return b''.join(json.dumps(item).encode() + b'\n' for item in content)


def to_pickle(content):
    """A pickle as Python 2 wrote them."""
    return pickle.dumps(content, protocol=2)
