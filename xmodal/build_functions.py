"""Build functions of the registries: MMEngine's, with errors that name the key to change."""

import inspect
from collections.abc import Callable, Collection
from inspect import Parameter
from typing import Any

from mmengine.config import Config
from mmengine.registry import Registry, build_runner_from_cfg

from xmodal.errors import ConfigError, nearest, no_key

# Keys that MMEngine's build functions take out of a config before they call the class.
_READ_BY_MMENGINE = ('type', '_scope_', 'convert_to_iter_based', 'epoch_length')
_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def with_config_errors(build: Callable) -> Callable:
    """Makes a build function raise :class:`ConfigError` for a wrong type or wrong keys.

    Errors that a constructor raises itself pass through unchanged.

    Args:
        build: ``build_from_cfg``, or another function of ``mmengine.registry.build_functions``.
    """

    def build_checked(config: dict, default_args: dict | None = None, *, registry: Registry) -> Any:
        if isinstance(config, list):  # several models, which MMEngine puts into a Sequential
            return build(config, registry, default_args)
        default_args = default_args or {}
        component = _component_of(config, default_args, registry)
        try:
            return build(config, registry, default_args)
        except TypeError as error:
            # Only after the call is it certain that a key was refused: a class may pass its
            # **kwargs to something that is not one of its bases.
            keys = [key for key in config if key not in _READ_BY_MMENGINE]
            problem = unknown_key(component, keys) or _missing_keys(
                component, {*keys, *default_args}
            )
            if problem is None and accepted_keys(component) is None:
                problem = f'{component.__name__} passes keys on that are refused: {error}'
            if problem is None:
                raise
            raise ConfigError(problem) from error

    return build_checked


def build_runner_checked(config: dict | Config, *, registry: Registry) -> Any:
    """Builds a runner, whose type is the key ``runner_type``.

    Raises:
        ConfigError: if no runner has this name.
    """
    find_component(config.get('runner_type', 'Runner'), registry)
    return build_runner_from_cfg(config, registry)


def find_component(name: str | Callable, registry: Registry) -> Callable:
    """Returns the class or function that is registered under a name.

    Raises:
        ConfigError: if there is none; gives the most similar name.
    """
    if callable(name):
        return name
    component = registry.get(name)
    if component is None:
        near = nearest(name.rpartition('.')[2], _registered_names(registry))
        hint = f", did you mean '{near}'?" if near else '.'
        raise ConfigError(
            f"type='{name}' is not a registered {registry.name}{hint} A component of your own is "
            "registered when its module is imported: custom_imports=dict(imports=['my.module'])."
        )
    return component


def unknown_key(component: Callable, keys: Collection[str]) -> str | None:
    """Says which key of a config a class or function does not take; None if it takes all."""
    accepted = accepted_keys(component)
    if accepted is None:
        return None
    unknown = next((key for key in keys if key not in accepted), None)
    return unknown and f'{component.__name__} {no_key(unknown, accepted)}'


def accepted_keys(component: Callable) -> list[str] | None:
    """Returns the arguments of a class or function, or None if it takes any.

    A class that takes ``**kwargs`` also takes the arguments of its bases.
    """
    names: list[str] = []
    for base in getattr(component, '__mro__', (component, object)):
        if base is object:
            return None
        parameters = _parameters(base)
        names += [name for name, p in parameters.items() if p.kind not in _VARIADIC]
        if not any(p.kind == Parameter.VAR_KEYWORD for p in parameters.values()):
            break
    return list(dict.fromkeys(names))


def _component_of(config: dict, default_args: dict, registry: Registry) -> Callable:
    """Returns the class or function that a config builds."""
    if not isinstance(config, dict | Config):
        raise ConfigError(f"expected a dict with type='…' for a {registry.name}, got {config!r}")
    if 'type' not in config and 'type' not in default_args:
        raise ConfigError(
            f'{config} of the config has no type: is the name of this key misspelt? A new '
            f"{registry.name} needs type='…'."
        )
    name = config.get('type', default_args.get('type'))
    with registry.switch_scope_and_registry(config.get('_scope_')) as registry:
        return find_component(name, registry)


def _registered_names(registry: Registry | None) -> set[str]:
    """Returns the names of a registry and of its parents."""
    names: set[str] = set()
    while registry is not None:
        names |= registry.module_dict.keys()
        registry = registry.parent
    return names


def _missing_keys(component: Callable, given: Collection[str]) -> str | None:
    """Says which required arguments of a class or function are not given; None if all are."""
    missing = [
        f"'{name}'"
        for name, p in _parameters(component).items()
        if p.default is Parameter.empty and p.kind not in _VARIADIC and name not in given
    ]
    if not missing:
        return None
    return f'{component.__name__} needs {", ".join(missing)}, which the config does not give'


def _parameters(component: Callable) -> dict[str, Parameter]:
    return dict(inspect.signature(component).parameters)
