"""A model in a folder: ``config.py``, ``model.safetensors``, vocabulary and model card.

A folder needs nothing outside of itself but this package, on disk and on the Hugging Face hub. Its
config is read as data: no code of it runs, because it may come from a stranger.
"""

import re
from pathlib import Path

from mmengine.config import Config
from mmengine.registry import Registry

import xmodal
from xmodal.config_text import read_values, sections
from xmodal.errors import ConfigError, nearest
from xmodal.files import read_text

CONFIG, WEIGHTS, CARD = 'config.py', 'model.safetensors', 'README.md'
_SHIPPED = Path(xmodal.__file__).parent / 'zoo' / 'weights'
_IMPORTING = {'_scope_', 'checkpoint_path'}
_HUB_NAME = re.compile(r'[\w.-]+/[\w.-]+')


def find_folder(name: str | Path) -> Path | None:
    """The folder of a model: a path, the name of one in the package, or one on the hub.

    Returns:
        A folder with a config and weights; None when the name is of something else.

    Raises:
        FileNotFoundError: when the hub has no such model, or cannot be reached.
    """
    for folder in (Path(name), _SHIPPED / name):
        if (folder / CONFIG).is_file() and (folder / WEIGHTS).is_file():
            return folder
    if _HUB_NAME.fullmatch(str(name)) and not Path(name).exists():
        parent = Path(name).parent
        if parent.is_dir():  # of this disk, and not a user of the hub
            near = nearest(Path(name).name, [path.name for path in parent.iterdir()])
            hint = f', did you mean {parent / near}?' if near else ''
            raise FileNotFoundError(f"'{name}' does not exist{hint}")
        return _from_hub(str(name))
    return None


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download

    files = [CONFIG, WEIGHTS, CARD, '*.txt', '*.json', '*.safetensors', '*.pth']
    try:
        folder = Path(snapshot_download(name, allow_patterns=files))
    except Exception as error:  # of the hub, of HTTP, of the disk
        raise FileNotFoundError(
            f"'{name}' is no folder of a model here, nor a name of the zoo, and the hub says: "
            f'{str(error).splitlines()[0]}'
        ) from error
    if not (folder / CONFIG).is_file() or not (folder / WEIGHTS).is_file():
        raise FileNotFoundError(
            f"'{name}' on the hub has no {CONFIG} or no {WEIGHTS}: it is no model of xmodal"
        )
    return folder


def read_folder(folder: Path) -> Config:
    """Reads the config of a folder without running it.

    Raises:
        ConfigError: when it has something else than values, or a ``type`` of another package.
    """
    file = folder / CONFIG
    try:
        values = read_values(read_text(file), folder.resolve().as_posix())
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ConfigError(
            f'{file}: {error}. The config of a folder is read, not run: it has assignments of '
            'numbers, texts, lists and dict(…) alone'
        ) from error
    _require_own_types(file, values)
    return Config(values, filename=str(file))


def _require_own_types(file: Path, values: dict) -> None:
    """A dotted type is imported when it is built: it may be a component of this package alone.

    MMEngine also takes any function by its dotted name, and imports what ``_scope_`` names; timm
    unpickles what ``checkpoint_path`` names.
    """
    if 'custom_imports' in values:
        raise ConfigError(
            f'{file} has custom_imports, and the folder of a model may not name code: import its '
            'modules first, and leave out this key'
        )
    for _, section in sections(values):
        for key in _IMPORTING & section.keys():
            raise ConfigError(f'{file} has {key}, and the folder of a model may not name code')
        name = section.get('type')
        if isinstance(name, str) and '.' in name and not _is_component(name):
            raise ConfigError(f"{file}: type='{name}' is no component of xmodal")


def _is_component(name: str) -> bool:
    from xmodal import registry  # imports PyTorch

    scope, _, own = name.partition('.')
    registry.register_all()
    registries = [each for each in vars(registry).values() if isinstance(each, Registry)]
    return scope == registry.SCOPE and any(own in each.module_dict for each in registries)
