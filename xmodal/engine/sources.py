"""Python code of the user: configs, and the modules that they import."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmengine.config import Config
from mmengine.utils import import_modules_from_strings

from xmodal.engine.errors import is_in_package, origin
from xmodal.errors import ConfigError


def import_custom_modules(config: Config) -> None:
    """Imports the modules that a config names in ``custom_imports``.

    Raises:
        ConfigError: see :func:`explain_source_errors`.
    """
    if imports := config.get('custom_imports'):
        with explain_source_errors(config.filename):
            import_modules_from_strings(**imports)


@contextmanager
def explain_source_errors(config_file: str) -> Iterator[None]:
    """Turns failed imports and syntax errors of the user's code into a :class:`ConfigError`.

    Those of xmodal's own modules are bugs and pass through.

    Args:
        config_file: the config that is read inside the context.

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
        if not Path(error.filename or '').is_file():  # MMEngine parses configs without their names
            _check_syntax(config_file)
        raise ConfigError(_describe(error)) from error


def _check_syntax(file: str) -> None:
    """Names the file of a syntax error, which is a config or one that it inherits from."""
    try:
        compile(Path(file).read_text(encoding='utf-8'), file, 'exec')
    except SyntaxError as error:
        raise ConfigError(_describe(error)) from error
    for base in Config._get_base_files(file):
        _check_syntax(str(Path(file).parent / base))


def _describe(error: SyntaxError) -> str:
    return f'{error.filename}, line {error.lineno}: {error.msg}'
