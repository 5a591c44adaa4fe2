"""Build functions of the registries: MMEngine's, with errors that name the key to change."""

import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import mmengine
from mmengine.config import Config
from mmengine.registry import Registry, build_runner_from_cfg
from torch import Tensor
from torch.optim import Adam, AdamW

from xmodal.arguments import accepted_parameters, unknown_key, what_is_missing, wrong_value
from xmodal.errors import ConfigError, nearest, not_installed, origin, shortened

# Keys that MMEngine's build functions take out of a config before they call the class.
_READ_BY_MMENGINE = ('type', '_scope_', 'convert_to_iter_based', 'epoch_length')
# Their components are built from the values of a config alone.
_LIBRARIES = {'mmengine', 'torch'}
_INSTALLED = {'site-packages', 'dist-packages'}  # folders of packages
#: Devices on which PyTorch has one kernel for all of Adam's arithmetic.
FUSING_DEVICES = {'cpu', 'cuda', 'mps', 'xpu'}
#: Arguments of Adam that say how it is computed.
KERNELS = ('fused', 'foreach', 'capturable', 'differentiable')
_PASSES = '_xmodal_passes'  # marks an error that components around its own are not to explain
_MISSING = re.compile(r'(?:missing \d+ required .*?arguments?: |abstract class )(.*)')


def with_config_errors(build: Callable) -> Callable:
    """Makes a build function raise :class:`ConfigError` for what a config has wrong.

    That is a type that nobody registered, a key or a value that its class does not take, and
    whatever a library raises when it gets the values. An error of xmodal's or of a plug-in's own
    code passes through unchanged.

    Args:
        build: ``build_from_cfg``, or another function of ``mmengine.registry.build_functions``.
    """

    def build_checked(config: dict, default_args: dict | None = None, *, registry: Registry) -> Any:
        if isinstance(config, list) and config and all(isinstance(x, dict) for x in config):
            return build(config, registry, default_args)  # models, for MMEngine's Sequential
        default_args = default_args or {}
        component = _component_of(config, default_args, registry)
        if wrong := wrong_value(component, config):
            key, expected = wrong
            value = shortened(config[key])
            raise ConfigError(f'{component.__name__}: {key}={value}, expected {expected}')
        try:
            return build(config, registry, default_args)
        except Exception as error:
            # Only after the call is it certain that a key was refused: a class may pass its
            # **kwargs to something that is not one of its bases.
            if problem := _wrong_keys(component, config, default_args, error):
                raise ConfigError(problem) from error
            _raise_refusal(error, component, config)

    return build_checked


def with_frozen(build: Callable) -> Callable:
    """Lets every module of a config have a key ``frozen``: True, or names of parts of it.

    A frozen module has no gradients. Its model keeps it in eval mode, so that its batch norm and
    dropout do not act (:meth:`xmodal.models.base.CrossModalModel.train`).
    """

    def build_module(config: dict, default_args: dict | None = None, *, registry: Registry) -> Any:
        if not isinstance(config, dict) or 'frozen' not in config:
            return build(config, default_args, registry=registry)
        config = dict(config)
        frozen = config.pop('frozen')
        module = build(config, default_args, registry=registry)
        parts = dict(module.named_modules())
        names = [''] * frozen if isinstance(frozen, bool) else frozen
        if not isinstance(names, list) or not all(name in parts for name in names):
            known = [name for name, _ in module.named_children()]
            raise ConfigError(
                f'frozen={frozen!r} of {config["type"]}, expected True, False, or a list of names '
                f'of its parts, such as {known}'
            )
        for name in names:
            parts[name].requires_grad_(False).is_frozen = True
        return module

    return build_module


def with_fused(build: Callable) -> Callable:
    """Makes Adam and AdamW fused where PyTorch can, unless a config says how they are computed.

    Weights differ by rounding alone; on a CPU a step of the optimizer takes a sixth of the time.
    """

    def build_optimizer(
        config: dict, default_args: dict | None = None, *, registry: Registry
    ) -> Any:
        optimizer = build(config, default_args, registry=registry)
        is_said = {*config, *(default_args or {})} & set(KERNELS)
        if type(optimizer) in (Adam, AdamW) and not is_said:
            # After PyTorch has made groups of what it was given, generators and names included.
            for group in optimizer.param_groups:
                says_nothing = all(group[key] == optimizer.defaults[key] for key in KERNELS)
                if says_nothing and _can_fuse(group['params']):
                    group['fused'] = True
        return optimizer

    return build_optimizer


def _can_fuse(params: list[Tensor]) -> bool:
    return all(p.is_floating_point() and p.device.type in FUSING_DEVICES for p in params)


def build_runner_checked(config: dict | Config, *, registry: Registry) -> Any:
    """Builds a runner, whose type is the key ``runner_type``.

    Raises:
        ConfigError: if no runner has this name, or MMEngine's runner refuses a value.
    """
    runner = find_component(config.get('runner_type', 'Runner'), registry)
    try:
        return build_runner_from_cfg(config, registry)
    except OSError:
        raise
    except Exception as error:
        _raise_refusal(error, runner, {})


def find_component(name: str | Callable, registry: Registry) -> Callable:
    """Returns the class or function that is registered under a name.

    Raises:
        ConfigError: if there is none; gives the most similar name.
    """
    if callable(name):
        return name
    if not isinstance(name, str) or not name.strip('.'):
        raise ConfigError(f'type={name!r}, expected the name of a registered {registry.name}')
    component = registry.get(name)
    if component is None:
        if other := _other_registry(name, registry):
            raise ConfigError(
                f"type='{name}' is registered as a {other}, and a {registry.name} is expected: is "
                'it in the right place of the config, and registered in the right registry?'
            )
        near = nearest(name.rpartition('.')[2], _registered_names(registry))
        hint = not_installed(name) or (f", did you mean '{near}'?" if near else '.')
        raise ConfigError(
            f"type='{name}' is not a registered {registry.name}{hint} A component of your own is "
            "registered when its module is imported: custom_imports=dict(imports=['my.module']). "
            'The config of a folder has none: import the module first, or give a tool your own '
            'config, and the folder as checkpoint.'
        )
    return component


def _component_of(config: dict, default_args: dict, registry: Registry) -> Callable:
    """Returns the class or function that a config builds."""
    if not isinstance(config, dict | Config):
        raise ConfigError(f"expected a dict with type='…' for a {registry.name}, got {config!r}")
    merged = {**default_args, **config}
    if 'type' not in merged:
        raise ConfigError(
            f'{config} of the config has no type: is the name of this key misspelt? A new '
            f"{registry.name} needs type='…'."
        )
    with registry.switch_scope_and_registry(config.get('_scope_')) as registry:
        return find_component(merged['type'], registry)


def _registered_names(registry: Registry | None) -> set[str]:
    """Returns the names of a registry and of its parents."""
    names: set[str] = set()
    while registry is not None:
        names |= registry.module_dict.keys()
        registry = registry.parent
    return names


def _other_registry(name: str, registry: Registry) -> str | None:
    """Returns the name of a registry that has a component which the given one has not."""
    parents = [x for x in vars(mmengine.registry).values() if isinstance(x, Registry)]
    registries = [one for parent in parents for one in (parent, *parent.children.values())]
    found = [one.name for one in registries if name in one.module_dict]
    return next((other for other in found if other != registry.name), None)


def _wrong_keys(
    component: Callable, config: dict, default_args: dict, error: Exception
) -> str | None:
    """Says which keys are too many or missing, if that is what Python complains of."""
    if not isinstance(error, TypeError) or hasattr(error, _PASSES):
        return None
    if 'unexpected keyword argument' in str(error):
        keys = [key for key in config if key not in _READ_BY_MMENGINE]
        problem = unknown_key(component, keys)
        if problem is None and accepted_parameters(component)[1]:
            problem = f'{component.__name__} passes keys on that are refused: {error}'
        return problem
    if missing := _MISSING.search(str(error)):
        own = what_is_missing(component, {*config, *default_args})
        return own or _missing_of_a_part(component, config, missing[1], error)
    return None


def _missing_of_a_part(
    component: Callable, config: dict, names: str, error: TypeError
) -> str | None:
    """Says what a base of a class lacks, or the function to which a dict of the config is given."""
    parts = [key for key, x in config.items() if isinstance(x, dict) and 'type' not in x]
    if set(re.findall(r'\w+', names)) & accepted_parameters(component)[0].keys():
        return f'{component.__name__} needs {names}, which the config does not give'
    if parts and not _is_of_plugin(error):
        return f'{component.__name__}: {" or ".join(parts)} needs {names}, which it does not give'
    return None


def _raise_refusal(error: Exception, component: Callable, config: dict) -> NoReturn:
    """Raises what a library says of the values of a config as a :class:`ConfigError`."""
    own = {'xmodal', component.__module__.partition('.')[0]} - _LIBRARIES
    names_file = isinstance(error, OSError) and error.filename is not None
    is_told = isinstance(error, ConfigError) or names_file or hasattr(error, _PASSES)
    if is_told or origin(error) in own or _is_of_plugin(error):
        setattr(error, _PASSES, True)
        raise error
    values = ', '.join(f'{key}={shortened(x)}' for key, x in config.items() if key != 'type')
    reason = f'{type(error).__name__}: {error}'
    # Code that stumbled over a value.
    if isinstance(error, TypeError | AttributeError | IndexError) and values:
        reason = 'one of them is of a type that it does not take'
    given = f' its values ({values})' if values else ''
    raise ConfigError(f'{component.__name__} refuses{given}: {reason}') from error


def _is_of_plugin(error: Exception) -> bool:
    """Whether a function on the way to an error is neither xmodal's nor an installed package's."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        package = frame.f_globals.get('__name__', '').partition('.')[0]
        parts = Path(frame.f_code.co_filename).parts
        is_installed = package in sys.stdlib_module_names or _INSTALLED.intersection(parts)
        if package != 'xmodal' and not is_installed:
            return True
    return False
