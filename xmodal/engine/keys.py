"""Keys of a config that nothing would read."""

from mmengine.config import Config
from torch.utils.data import DataLoader, IterableDataset

from xmodal.arguments import unknown_key
from xmodal.build_functions import find_component
from xmodal.config_text import walk
from xmodal.errors import ConfigError, nearest, no_key
from xmodal.registry import DATASETS, FUNCTIONS

TOP_LEVEL_KEYS = frozenset(
    """model train_dataloader val_dataloader test_dataloader train_cfg val_cfg test_cfg
    auto_scale_lr optim_wrapper param_scheduler val_evaluator test_evaluator default_hooks
    custom_hooks custom_imports data_preprocessor load_from load_from_ignore resume launcher env_cfg
    log_processor log_level visualizer default_scope randomness experiment_name work_dir runner_type
    model_wrapper_cfg fsdp find_unused_parameters sync_bn compile activation_checkpointing
    recompute_gelu
    """.split()
)
# The sections that MMEngine reads key by key, without a class that would refuse other keys.
_KEYS_OF = {
    'randomness': ('seed', 'diff_rank_seed', 'deterministic'),
    'env_cfg': ('cudnn_benchmark', 'mp_cfg', 'dist_cfg', 'resource_limit'),
}


def check_keys(config: Config) -> None:
    """Refuses top-level dicts that nothing reads and whose name resembles a known key.

    Others, and plain values (numbers, strings, lists), may be variables of the config.

    Raises:
        ConfigError: names the key and the nearest known key.
    """
    for key, value in config.items():
        if isinstance(value, dict) and key not in TOP_LEVEL_KEYS:
            if near := nearest(key, TOP_LEVEL_KEYS, cutoff=0.75):
                raise ConfigError(
                    f"{config.filename}: unknown key '{key}', did you mean '{near}'? A dict of "
                    'your own that other keys are made of needs a name that resembles none of '
                    'these.'
                )
    for section, known in _KEYS_OF.items():
        for key in config.get(section) or ():
            if key not in known:
                raise ConfigError(f'{config.filename}: {section} {no_key(key, known)}')


def check_options(config: Config, options: dict[str, object]) -> None:
    """Refuses options of a command line that would create a key that nothing reads.

    Args:
        config: as it was before the options.
        options: values by dotted key.

    Raises:
        ConfigError: names the option and the nearest keys of the config.
    """
    for option in options:
        first, *_ = names = option.split('.')
        if first not in TOP_LEVEL_KEYS:
            if first not in config:
                raise ConfigError(
                    f"--cfg-options {option}: unknown key '{first}'{_hint(first, config)}"
                )
            if copies := _copies(first, config):
                raise ConfigError(
                    f"--cfg-options {option}: '{first}' is a variable of {config.filename}, of "
                    f'which keys are made already: change {", ".join(copies)}'
                )
        section, path = config, ''
        for name in names[:-1]:
            if not isinstance(section, dict | Config):
                break
            if name not in section:
                # A new dict is useful if something reads its name. One without a type next to one
                # of nearly the same name is a typing error.
                others = [key for key, value in section.items() if isinstance(value, dict)]
                near = nearest(name, others, cutoff=0.75)
                if path and near and f'{path}{name}.type' not in options:
                    raise ConfigError(
                        f"--cfg-options {option}: unknown key '{path}{name}', did you mean "
                        f"'{path}{near}'?"
                    )
                break
            section, path = section[name], f'{path}{name}.'


def check_dataloader(dataloader: dict) -> None:
    """Refuses keys and functions that a data loader does not know, and a cut stream.

    MMEngine passes keys and functions to PyTorch without its registries' ``build``.

    Raises:
        ConfigError: names the key or the function, and the nearest known one.
    """
    keys = [key for key in dataloader if key != 'num_batch_per_epoch']  # which MMEngine reads
    if problem := unknown_key(DataLoader, keys):
        raise ConfigError(problem)
    for name in ('collate_fn', 'worker_init_fn'):
        if isinstance(dataloader.get(name), dict):
            keys = dict(dataloader[name])
            function = find_component(keys.pop('type'), FUNCTIONS)
            if problem := unknown_key(function, keys):
                raise ConfigError(problem)
    _refuse_cut_stream(dataloader)


def _refuse_cut_stream(dataloader: dict) -> None:
    """Refuses to cut an epoch of a stream, since MMEngine's cut data set has samples by index."""
    batches, dataset = dataloader.get('num_batch_per_epoch'), dataloader.get('dataset')
    if batches is None or not isinstance(dataset, dict):
        return
    kind = find_component(dataset.get('type'), DATASETS)
    if isinstance(kind, type) and issubclass(kind, IterableDataset):
        raise ConfigError(
            f'num_batch_per_epoch={batches} takes samples by their index, and a {kind.__name__} is '
            'a stream, which has none: leave the key out, and make its epochs shorter by a key of '
            'the dataset, such as num_samples'
        )


def _copies(name: str, config: Config) -> list[str]:
    """The keys that have their value from a variable of the config.

    Other variables are among them only where there is no key that something reads.
    """
    value = config[name]
    copies = [
        path
        for path, other in walk(config)
        if path != name
        and other == value
        and (path.rpartition('.')[2] == name or isinstance(value, list | dict))
    ]
    return [path for path in copies if path.partition('.')[0] in TOP_LEVEL_KEYS] or copies


def _hint(name: str, config: Config) -> str:
    """Says where the config has, or may have, a key of a similar name; else names its sections."""
    paths: dict[str, list[str]] = {}
    for path in (*dict(walk(config)), *(TOP_LEVEL_KEYS - config.keys())):
        paths.setdefault(path.rpartition('.')[2], []).append(path)
    near = nearest(name, paths, cutoff=0.7)
    if near is None:
        sections = ', '.join(key for key, value in config.items() if isinstance(value, dict))
        return f'; the config has {sections}'
    return f', did you mean {" or ".join(repr(path) for path in paths[near][:3])}?'
