"""What a class or function takes, by its signature, compared with the keys of a config."""

import collections.abc
import inspect
import math
import types
import typing
from collections.abc import Callable, Collection
from functools import cache
from inspect import Parameter
from pathlib import Path

import torch

from xmodal.errors import ConfigError, no_key, shortened

_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
# What a config is made of. Anything else in it was built already, and is not judged.
_PLAIN = (type(None), bool, int, float, str, list, tuple, dict)
_LISTS = (list, tuple, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Sized)
_DICTS = (dict, collections.abc.Mapping)
# Of MMEngine's schedules, which are annotated as whole numbers and take shares of an epoch.
_IN_EPOCHS = ('begin', 'end')
_WORDS = {
    int: 'a whole number',
    float: 'a number',
    bool: 'True or False',
    str: 'a string',
    Path: 'a string',
    type(None): 'None',
    None: 'None',
}


def unknown_key(component: Callable, keys: Collection[str]) -> str | None:
    """Says which key of a config a class or function does not take; None if it takes all."""
    parameters, takes_all = accepted_parameters(component)
    if takes_all:
        return None
    unknown = next((key for key in keys if key not in parameters), None)
    return None if unknown is None else f'{component.__name__} {no_key(unknown, parameters)}'


def what_is_missing(component: Callable, given: Collection[str]) -> str | None:
    """Says which required arguments are not given, or which methods a class lacks; None if none."""
    if methods := sorted(getattr(component, '__abstractmethods__', ())):
        names = ', '.join(f'{name}()' for name in methods)
        return f'{component.__name__} has no {names}, which its base class asks for'
    missing = [
        f"'{name}'"
        for name, p in inspect.signature(component).parameters.items()
        if p.default is Parameter.empty and p.kind not in _VARIADIC and name not in given
    ]
    if not missing:
        return None
    return f'{component.__name__} needs {", ".join(missing)}, which the config does not give'


def checked(component: Callable, config: dict, key: str) -> dict:
    """The arguments that a config has for a function that no registry builds.

    Args:
        component: the function.
        config: its arguments by name.
        key: of the config, for errors.

    Raises:
        ConfigError: for an argument that it does not take, of a wrong type, or missing.
    """
    if problem := unknown_key(component, config) or what_is_missing(component, config):
        raise ConfigError(f'{key}: {problem}')
    if wrong := wrong_value(component, config):
        name, expected = wrong
        raise ConfigError(f'{key}.{name}={shortened(config[name])}, expected {expected}')
    return config


def wrong_value(component: Callable, config: dict) -> tuple[str, str] | None:
    """Finds a value that is none of the types with which an argument is annotated.

    Args:
        component: a class or function.
        config: values by argument; other keys are not looked at.

    Returns:
        The key and what is expected of it, or None.
    """
    parameters, _ = accepted_parameters(component)
    for key, value in config.items():
        if key not in parameters or value is parameters[key].default:
            continue
        annotation = parameters[key].annotation
        if annotation is int and key in _IN_EPOCHS:
            annotation = float
        if not _fits(value, annotation):
            return key, _describe(annotation)
    return None


@cache
def accepted_parameters(component: Callable) -> tuple[dict[str, Parameter], bool]:
    """Returns the arguments of a class or function, and whether it takes any others.

    A class that takes ``**kwargs`` also takes the arguments of its bases.
    """
    found: dict[str, Parameter] = {}
    for base in getattr(component, '__mro__', (component, object)):
        if base is object:
            return found, True
        parameters = inspect.signature(base).parameters
        for name, p in parameters.items():
            if p.kind not in _VARIADIC:
                found.setdefault(name, p.replace(annotation=_annotation(base, p)))
        if not any(p.kind == Parameter.VAR_KEYWORD for p in parameters.values()):
            break
    return found, False


def _annotation(component: Callable, p: Parameter) -> object:
    if not isinstance(p.annotation, str):
        return typing.Any if p.annotation is Parameter.empty else p.annotation
    function = component.__init__ if inspect.isclass(component) else component
    try:
        return eval(p.annotation, function.__globals__)
    except Exception:  # a name that a library imports for its type checker only
        return typing.Any


def _fits(value: object, annotation: object) -> bool:
    """Whether a plain value may be of an annotated type; a dict may become any object."""
    if not isinstance(value, _PLAIN) or annotation is typing.Any:
        return True
    origin, args = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, option) for option in args)
    if origin is typing.Literal:
        return value in args
    if origin is float:
        return type(value) is int or (type(value) is float and not math.isnan(value))
    if origin in (None, type(None)):
        return value is None
    if origin in (int, bool):
        return type(value) is origin
    if origin in (str, Path):
        return isinstance(value, str)
    if origin in _LISTS:
        return isinstance(value, list | tuple) and _items_fit(value, origin, args)
    if origin in _DICTS:
        values = value.values() if isinstance(value, dict) else [value]
        return isinstance(value, dict) and (
            len(args) < 2 or all(x is None or _fits(x, args[1]) for x in values)
        )
    if origin is torch.Tensor:
        return False
    if origin is collections.abc.Callable:
        return isinstance(value, dict)
    # A class whose objects are built from a dict, or named, as devices and types of numbers are.
    return not inspect.isclass(origin) or isinstance(value, str | dict)


def _items_fit(value: list | tuple, origin: object, args: tuple) -> bool:
    if origin is tuple and args and args[-1] is not Ellipsis:
        return len(value) == len(args) and all(map(_fits, value, args))
    return not args or all(_fits(item, args[0]) for item in value)


def is_plain(value: object) -> bool:
    """Whether a value is what a config is made of, as deep as it goes."""
    items = value.values() if isinstance(value, dict) else value
    has_items = isinstance(value, dict | list | tuple)
    return isinstance(value, _PLAIN) and (not has_items or all(map(is_plain, items)))


def _describe(annotation: object) -> str:
    """An annotated type in words."""
    origin, args = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        words = dict.fromkeys(map(_describe, args))
        return ' or '.join(sorted(words, key=lambda word: word == 'None'))
    if origin is typing.Literal:
        return ' or '.join(map(repr, args))
    if origin is tuple and args and args[-1] is not Ellipsis:
        return f'a list of {len(args)}: {", ".join(map(_describe, args))}'
    if origin in _LISTS:
        return f'a list, each item {_describe(args[0])}' if args else 'a list'
    if origin in _WORDS:
        return _WORDS[origin]
    return 'a dict'
