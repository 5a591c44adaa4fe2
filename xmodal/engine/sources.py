"""Python code of the user: configs, and the modules that they import."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mmengine
from mmengine.config import Config
from mmengine.utils import import_modules_from_strings

from xmodal.engine.errors import is_in_package
from xmodal.errors import ConfigError, no_key, origin
from xmodal.packaged import PREFIX, ROOT, find_file

_IMPORT_KEYS = ('imports', 'allow_failed_imports')


def import_custom_modules(config: Config) -> None:
    """Imports the modules that a config names in ``custom_imports``.

    Raises:
        ConfigError: see :func:`explain_source_errors`.
    """
    if imports := config.get('custom_imports'):
        if not isinstance(imports, dict) or not isinstance(imports.get('imports'), list | str):
            raise ConfigError(
                f"{config.filename}: custom_imports={imports}, expected dict(imports=['my.module'])"
            )
        for key in imports:
            if key not in _IMPORT_KEYS:
                raise ConfigError(f'{config.filename}: custom_imports {no_key(key, _IMPORT_KEYS)}')
        with explain_source_errors(config.filename):
            import_modules_from_strings(**imports)


def custom_modules(config: Config) -> list[str]:
    """The names in ``custom_imports``, once these are known to be right."""
    names = (config.get('custom_imports') or {}).get('imports', [])
    return [names] if isinstance(names, str) else list(names)


@contextmanager
def explain_source_errors(config_file: str) -> Iterator[None]:
    """Turns failed imports and syntax errors of the user's code into a :class:`ConfigError`.

    Those of xmodal's own modules are bugs and pass through.

    Args:
        config_file: the config whose modules are imported inside the context.

    Raises:
        ConfigError: names the module that could not be imported, or the file and line of a syntax
            error.
    """
    try:
        yield
    except ImportError as error:
        cause = error.__context__  # MMEngine's error, which names the module, has one
        if origin(cause or error) == 'xmodal':
            raise
        reason = f'{error}: {cause}' if cause else error
        raise ConfigError(
            f'{config_file}: {reason}. Modules are looked for in {Path.cwd()}, in PYTHONPATH and '
            'where packages are installed.'
        ) from error
    except SyntaxError as error:
        if is_in_package(error.filename):
            raise
        raise ConfigError(_describe(error, config_file)) from error


def read_sources(file: str) -> Config:
    """Reads a config without its ``custom_imports``.

    Raises:
        ConfigError: names the config, or the one that it inherits from, that is missing, is not
            UTF-8, has a syntax error, inherits from itself or fails, with the line.
    """
    _check_source(file, [])
    try:
        return Config.fromfile(file, import_custom_modules=False)
    except Exception as error:  # whatever the user's code raises
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f for f in frames if f.filename.endswith('.py') and not _is_library(f.filename)]
        place = f'{lines[-1].filename}, line {lines[-1].lineno}' if lines else file
        raise ConfigError(f'{place}: {type(error).__name__}: {error}') from error


def _is_library(file: str) -> bool:
    return is_in_package(file) or Path(file).is_relative_to(Path(mmengine.__file__).parent)


def _check_source(file: str, heirs: list[str]) -> None:
    """Checks a config and those that it inherits from, before any of them runs.

    Args:
        file: the config.
        heirs: the configs that inherit from it, the first one first.
    """
    chain = [*heirs, file]
    if Path(file).resolve() in (Path(heir).resolve() for heir in heirs):
        raise ConfigError(f'{heirs[0]} inherits from itself: {", from ".join(chain)}')
    try:
        if Path(file).suffix == '.py':
            compile(Path(file).read_bytes().decode(), file, 'exec')
        elif not isinstance(mmengine.load(file), dict):
            raise TypeError('its content is no dict of keys')
        bases = Config._get_base_files(file)
    except SyntaxError as error:
        raise ConfigError(_describe(error, file)) from error
    except OSError as error:
        reason = f'{error.strerror}{_in_package(file)}'
        raise ConfigError(f'{", from ".join(chain)}: {reason}') from error
    except Exception as error:
        raise ConfigError(f'{file}: {type(error).__name__}: {error}') from error
    for base in bases:
        if not isinstance(base, str):
            raise ConfigError(f'{file}: _base_ has {base!r}, expected names of files')
        if base.startswith(PREFIX):
            _check_source(str(find_file(base)), chain)
        elif '::' not in base:  # of another package
            _check_source(str(Path(file).parent / base), chain)


def _in_package(file: str) -> str:
    """Names the config of the package that a missing one may be, as where there is no checkout."""
    _, folder, name = Path(file).as_posix().rpartition('configs/')
    is_there = folder and (ROOT / folder / name).is_file()
    return f". The package has it: _base_ = '{PREFIX}{name}'" if is_there else ''


def _describe(error: SyntaxError, file: str) -> str:
    return f'{error.filename or file}, line {error.lineno}: {error.msg}'
