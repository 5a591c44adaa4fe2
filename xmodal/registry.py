"""The registries of xmodal: children of MMEngine's, so that configs find both.

A component is added from anywhere, without touching the package::

    from xmodal.registry import MODELS

    @MODELS.register_module()
    class MyPosition(NoPosition):
        ...

and a config that names the module in ``custom_imports`` can then say ``type='MyPosition'``.
"""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from mmengine import registry as _mmengine
from mmengine.config import Config

from xmodal.build_functions import build_runner_checked, with_config_errors, with_frozen, with_fused
from xmodal.lora import with_lora
from xmodal.packaged import PREFIX, find_file
from xmodal.products import with_fast_linear

SCOPE = 'xmodal'
_PACKAGES = ('datasets', 'engine', 'evaluation', 'models')


def _modules(package: str) -> list[str]:
    """The modules of a package; importing the package itself does not import all of them."""
    folder = Path(__file__).with_name(package)
    return [module.name for module in iter_modules([str(folder)], f'{SCOPE}.{package}.')]


def _child(name: str, *packages: str) -> _mmengine.Registry:
    """Makes xmodal's child of MMEngine's registry ``name``, filled from ``packages`` on demand."""
    parent = getattr(_mmengine, name)
    build = build_runner_checked if name == 'RUNNERS' else with_config_errors(parent.build_func)
    if name == 'MODELS':  # every module, whatever it is part of
        build = with_fast_linear(with_lora(with_frozen(build)))
    if name == 'OPTIMIZERS':
        build = with_fused(build)
    locations = [module for package in packages for module in _modules(package)]
    return _mmengine.Registry(
        parent.name, build_func=build, parent=parent, scope=SCOPE, locations=locations
    )


MODELS = _child('MODELS', 'models')
MODEL_WRAPPERS = _child('MODEL_WRAPPERS', 'models')
DATASETS = _child('DATASETS', 'datasets')
DATA_SAMPLERS = _child('DATA_SAMPLERS', 'datasets')
TRANSFORMS = _child('TRANSFORMS', 'datasets')
FUNCTIONS = _child('FUNCTIONS', 'datasets')
HOOKS = _child('HOOKS', 'engine')
LOOPS = _child('LOOPS', 'engine')
TASK_UTILS = _child('TASK_UTILS', 'engine')
RUNNERS = _child('RUNNERS', 'engine')
LOG_PROCESSORS = _child('LOG_PROCESSORS', 'engine')
OPTIMIZERS = _child('OPTIMIZERS', 'engine')
OPTIM_WRAPPERS = _child('OPTIM_WRAPPERS', 'engine')
OPTIM_WRAPPER_CONSTRUCTORS = _child('OPTIM_WRAPPER_CONSTRUCTORS', 'engine')
PARAM_SCHEDULERS = _child('PARAM_SCHEDULERS', 'engine')
METRICS = _child('METRICS', 'evaluation')
EVALUATOR = _child('EVALUATOR', 'evaluation')
VISUALIZERS = _child('VISUALIZERS')
VISBACKENDS = _child('VISBACKENDS')


def register_all() -> None:
    """Imports every package that registers components, and makes xmodal the default scope.

    MMEngine's runner builds hooks, loops, datasets and optimizers from MMEngine's own registries.
    From here on these report wrong keys as xmodal's registries do.
    """
    for package in _PACKAGES:
        for module in _modules(package):
            import_module(module)
    for registry in globals().values():
        if isinstance(registry, _mmengine.Registry):
            registry.parent.build_func = registry.build_func
    if not _mmengine.DefaultScope.check_instance_created(SCOPE):
        _mmengine.DefaultScope.get_instance(SCOPE, scope_name=SCOPE)


# MMEngine has a fixed list of the packages whose configs it finds by name. These add xmodal's.
_find_base_in_mmengine = Config._get_cfg_path
_read_in_mmengine = Config.fromfile


def _find_base(base: str, heir: str) -> tuple[str, str | None]:
    """The path of a config to inherit from, and the scope that MMEngine sets in its components.

    The configs of xmodal have none to set: they name ``default_scope``.
    """
    if base.startswith(PREFIX):
        return str(find_file(base)), None
    return _find_base_in_mmengine(base, heir)


def _read(filename: str | Path, *args, **options) -> Config:
    """``Config.fromfile``, also of ``xmodal::acerpe/pretrain_4m.py``."""
    name = find_file(filename) if str(filename).startswith(PREFIX) else filename
    return _read_in_mmengine(name, *args, **options)


Config._get_cfg_path = staticmethod(_find_base)
Config.fromfile = staticmethod(_read)
