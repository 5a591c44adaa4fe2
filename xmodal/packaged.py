"""The configs and tools of xmodal, in a checkout or in an installed wheel.

A wheel holds them in ``xmodal/.mim``, as the packages of OpenMMLab do.
"""

from pathlib import Path

_PACKAGE = Path(__file__).parent
_IN_WHEEL = _PACKAGE / '.mim'

ROOT = _IN_WHEEL if _IN_WHEEL.is_dir() else _PACKAGE.parent
"""The folder of ``configs`` and ``tools``."""

PREFIX = 'xmodal::'
"""Begins the name of a config of the package: ``xmodal::acerpe/pretrain_4m.py``."""

_CONFIG_SUFFIXES = ('.py', '.json', '.yaml', '.yml')


def is_config_file(name: str | Path) -> bool:
    """Whether it is the path of a config, which may be missing, and not the name of a model."""
    return Path(name).suffix in _CONFIG_SUFFIXES


def find_file(name: str | Path) -> Path:
    """A file by its path, or one of the package.

    Args:
        name: a path; ``xmodal::acerpe/pretrain_4m.py`` is a config of the package, and so is
            ``configs/acerpe/pretrain_4m.py`` where the working directory has no such file.

    Returns:
        Its path. A name of nothing that exists is returned as it is, for the error that follows.
    """
    if str(name).startswith(PREFIX):
        return near(ROOT / 'configs' / str(name).removeprefix(PREFIX))
    path = Path(name)
    is_ours = path.parts[:1] == ('configs',) and not path.exists() and (ROOT / path).exists()
    return ROOT / path if is_ours else path


def find_config(name: str | Path) -> Path:
    """The file of a config, as :func:`find_file` finds it.

    Raises:
        FileNotFoundError: if there is none.
    """
    file = find_file(name)
    if not file.is_file():
        raise FileNotFoundError(
            f'config {file} does not exist; `ls {near(ROOT / "configs")}/*/` shows what there is'
        )
    return file


def near(path: Path) -> Path:
    """A path as it is written from the working directory: relative where it is below it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
