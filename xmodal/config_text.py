"""A config as data: read from its text without running it, searched, and compared."""

import ast
from collections.abc import Iterator
from typing import Any

from mmengine.config import Config

HERE = '{{ fileDirname }}'  # MMEngine's word for the folder of a config
ABSENT = object()  # the value of a key that a config does not have


def read_values(text: str, here: str = HERE) -> dict[str, Any]:
    """The values that a config assigns: numbers, texts, lists and ``dict(…)``, as MMEngine writes.

    Nothing of it is run, because it may come from a stranger.

    Args:
        text: of the config.
        here: its folder, in the place of ``HERE``.

    Raises:
        SyntaxError, RecursionError: when it is no Python, or too deep.
        ValueError: when it is something else than such assignments; names the line.
    """
    values = {}
    for statement in ast.parse(text).body:
        names = statement.targets if isinstance(statement, ast.Assign) else []
        if len(names) != 1 or not isinstance(names[0], ast.Name):
            raise ValueError(f'line {statement.lineno} is no assignment')
        values[names[0].id] = _value(statement.value, here)
    return values


def _value(node: ast.expr, here: str) -> Any:
    """The value of ``dict(a=…)``, or of a literal that may have such dicts in it."""
    if isinstance(node, ast.Call):
        if getattr(node.func, 'id', None) != 'dict' or node.args:
            raise ValueError(f'line {node.lineno} calls a function')
        return {keyword.arg: _value(keyword.value, here) for keyword in node.keywords}
    if isinstance(node, ast.List | ast.Tuple):
        items = [_value(item, here) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {ast.literal_eval(key): _value(value, here) for key, value in pairs}
    value = ast.literal_eval(node)
    return value.replace(HERE, here) if isinstance(value, str) else value


def walk(value: object, path: str = '') -> Iterator[tuple[str, object]]:
    """A config and all that is in it, with the dotted keys; those of a list are numbers."""
    yield path, value
    items = value.items() if isinstance(value, dict | Config) else ()
    for key, item in enumerate(value) if isinstance(value, list | tuple) else items:
        yield from walk(item, f'{path}.{key}'.lstrip('.'))


def sections(value: object, path: str = '') -> Iterator[tuple[str, dict]]:
    """The dicts among them, the config itself included."""
    return ((key, item) for key, item in walk(value, path) if isinstance(item, dict | Config))


def changed_values(old: Any, new: Any, key: str = '') -> Iterator[tuple[str, Any, Any]]:
    """The dotted keys whose values differ, each with both values, of which one may be ABSENT."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys(), key=str):
            values = old.get(name, ABSENT), new.get(name, ABSENT)
            yield from changed_values(*values, f'{key}.{name}'.removeprefix('.'))
    elif old != new:
        yield key, old, new
