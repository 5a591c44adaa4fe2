"""The weights of a model of the zoo, as a file that this package reads."""

from hashlib import blake2b
from pathlib import Path

from mmengine.config import Config

from xmodal.cache import cache_folder
from xmodal.files import FileError
from xmodal.version import __version__
from xmodal.zoo.download import download, once
from xmodal.zoo.metafile import ModelEntry


def find_checkpoint(entry: ModelEntry, config: Config, source: str | Path | None = None) -> Path:
    """The weights of a model, downloaded and converted where that has not been done before.

    Args:
        entry: the model.
        config: its config.
        source: a file that takes the place of the download: as its authors released it, or a
            checkpoint of a run.

    Raises:
        FileNotFoundError: when there are no weights; says how to get some.
        FileError: when they do not fit the model of the config.
    """
    if source is None:
        source = _download(entry)
    if entry.converter is None:
        return Path(source)
    return _convert(entry, config, Path(source))


def _download(entry: ModelEntry) -> Path:
    if entry.weights is None:
        train = f'train it by `xmodal train {entry.config}`'
        if entry.page:
            train = f'download those of its authors by hand from {entry.page}'
        raise FileNotFoundError(
            f"'{entry.name}' has no weights to download: {train}, and give the file "
            f"(pretrained='FILE'), or take random weights (pretrained=False)"
        )
    name = entry.weights.rsplit('/', 1)[-1]
    return download(entry.weights, cache_folder() / 'downloads' / name, entry.sha256)


def _convert(entry: ModelEntry, config: Config, source: Path) -> Path:
    """Converts a foreign file once, for this version and this model; one of a run stays."""
    # These take seconds to import.
    from xmodal.checkpoint_file import require_checkpoint
    from xmodal.converters import CONVERTERS
    from xmodal.registry import MODELS, register_all

    require_checkpoint(source)
    status = source.stat()
    identity = f'{__version__} {config.model} {status.st_size} {status.st_mtime_ns}'
    digest = blake2b(identity.encode(), digest_size=6).hexdigest()
    file = cache_folder() / 'converted' / f'{entry.name}-{digest}.pth'
    if not file.exists() and _is_own(source):  # a converted one is not read to see that
        return source

    def convert() -> None:
        register_all()
        model = MODELS.build(config.model)
        CONVERTERS[entry.converter](source, model).write(file, source)

    return once(file, convert)


def _is_own(file: Path) -> bool:
    """Whether a file has weights by the names of this package, whatever program wrote it."""
    from xmodal.checkpoint_file import read_checkpoint
    from xmodal.engine.legacy import current_names

    try:
        names = current_names(read_checkpoint(file).get('state_dict', {}))
    except FileError:  # it may hold more than tensors, as SGRAF's, which its converter can read
        return False
    return any(name.startswith(('backbone.', 'data_preprocessor.')) for name in names)
