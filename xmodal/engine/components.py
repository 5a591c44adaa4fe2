"""Values of a config, compared with what their classes take, before anything is built."""

from collections import defaultdict
from collections.abc import Callable

from mmengine.config import Config
from mmengine.registry import Registry
from mmengine.runner import LogProcessor, Runner
from mmengine.utils.dl_utils import set_multi_processing
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader

from xmodal import registry as registries
from xmodal.arguments import unknown_key, wrong_value
from xmodal.config_text import sections
from xmodal.errors import ConfigError, shortened

_LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')
# Sections without a type, and what reads them.
_READERS = {
    '': Runner,
    **dict.fromkeys(_LOADERS, DataLoader),
    'optim_wrapper.clip_grad': clip_grad_norm_,
    'log_processor': LogProcessor,
    'randomness': Runner.set_randomness,
    'env_cfg.mp_cfg': set_multi_processing,
}


def check_components(config: Config) -> None:
    """Refuses values of a type that the class or function which reads them does not take.

    Building says the same, but of a part of the test set only after the training. The components
    must be registered.

    Raises:
        ConfigError: names the dotted key, its value and what was expected.
    """
    registered = _registered()
    for path, section in sections(config):
        name = section.get('type', '')
        if not isinstance(name, str) and not callable(name) and path:
            raise ConfigError(f'{config.filename}: {path}.type={shortened(name)}, expected a name')
        for key, value in section.items():
            dotted = f'{path}.{key}'.lstrip('.')
            if getattr(value, 'ndim', 0):
                raise ConfigError(
                    f'{config.filename}: {dotted} is a {type(value).__name__}, which cannot be '
                    'saved with the config: write a list'
                )
            if value != value:
                raise ConfigError(f'{config.filename}: {dotted}=nan, expected a number')
        readers = [_READERS[path]] if path in _READERS else registered.get(_plain(name), [])
        problems = [_problem(reader, path, section) for reader in readers]
        if problems and all(problems):  # a name may be registered for several purposes
            key, expected = problems[0]
            dotted = f'{path}.{key}'.lstrip('.')
            value = shortened(section[key])
            raise ConfigError(f'{config.filename}: {dotted}={value}, expected {expected}')
        reader = _READERS.get(path)
        is_whole = path in ('', *_LOADERS) or 'type' in section  # others read keys, too
        if reader and not is_whole and (problem := unknown_key(reader, section)):
            raise ConfigError(f'{config.filename}: {path}: {problem}')


def find_load_regions(config: Config) -> dict:
    """The arguments of the first ``LoadRegions`` with an extractor in the config's data loaders.

    Raises:
        ValueError: when it has none.
    """
    content = config.to_dict()
    loaders = [content.get(name) for name in _LOADERS]
    for _, section in sections(loaders):
        if section.get('type') == 'LoadRegions' and section.get('extractor'):
            return section
    raise ValueError(
        f"{config.filename}: no pipeline has dict(type='LoadRegions', store=…, extractor=…), which "
        'says what to compute and where to write it'
    )


def _problem(component: Callable, path: str, section: dict) -> tuple[str, str] | None:
    if path.partition('.')[0] == 'model':  # a model may put the value of a part in place of None
        section = {key: value for key, value in section.items() if value is not None}
    return wrong_value(component, section)


def _registered() -> dict[str, list[Callable]]:
    """All registered components by name, which several registries may have."""
    found: dict[str, list[Callable]] = defaultdict(list)
    for registry in vars(registries).values():
        while isinstance(registry, Registry):
            registry.import_from_location()
            for name, component in registry.module_dict.items():
                found[name].append(component)
            registry = registry.parent
    return found


def _plain(name: str | Callable) -> str:
    """A name without its scope; nothing for a class, whose values are checked when it is built."""
    return name.rpartition('.')[2] if isinstance(name, str) else ''
