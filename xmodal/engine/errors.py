"""Errors of a run as the command line shows them: one sentence, or a traceback for a bug."""

import dis
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import xmodal
from xmodal.errors import ConfigError, origin

_PACKAGE = Path(xmodal.__file__).parent
_OURS = ('xmodal', 'tools', '__main__')


def run_or_explain(main: Callable[[], None]) -> None:
    """Runs a tool. An error that the user can correct ends it with a sentence and exit status 2.

    With ``XMODAL_DEBUG=1`` the traceback is printed as well.
    """
    try:
        main()
    except (ValueError, OSError, RuntimeError, AttributeError, KeyError, MemoryError) as error:
        sentence = explain(error)
        if sentence is None:
            raise
        if os.environ.get('XMODAL_DEBUG'):
            traceback.print_exc()
        print(f'error: {sentence}', file=sys.stderr)
        print('(XMODAL_DEBUG=1 shows the traceback)', file=sys.stderr)
        raise SystemExit(2) from None


def explain(error: Exception) -> str | None:
    """Returns the message of an error that the user can correct, or None for a bug.

    The user can correct a :class:`ConfigError`, an ``OSError`` about a named file, and a
    ``ValueError``, ``RuntimeError`` or ``OSError`` that xmodal or a tool raises itself. Python,
    PyTorch and NumPy raise the same classes for bugs, so it has to be known what raised the error.
    """
    text = str(error)
    if 'in DataLoader worker process' in text:
        return _explain_worker(error, text)
    if isinstance(error, ConfigError) or (isinstance(error, OSError) and error.filename):
        return text
    if isinstance(error, AttributeError | KeyError):
        return _explain_missing_key(error)
    is_deliberate = isinstance(error, OSError) or _is_stated(error)
    return text if is_deliberate and origin(error) in _OURS else None


def _is_stated(error: Exception) -> bool:
    """Whether a ``raise`` raised an error, and not an operator or a function in C."""
    last = error.__traceback__
    while last.tb_next:
        last = last.tb_next
    is_raise = last.tb_frame.f_code.co_code[last.tb_lasti] == dis.opmap['RAISE_VARARGS']
    return isinstance(error, ValueError | RuntimeError) and is_raise


def _explain_missing_key(error: AttributeError | KeyError) -> str | None:
    """Names a key that a tool looks for in a config, which MMEngine raises as it does for a bug."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    if frame.f_globals.get('__name__') != 'mmengine.config.config':
        return None
    key = re.findall(r"'([^']*)'", str(error))[-1:]
    return f"the config has no key '{''.join(key)}' where it is looked for: is it of another model?"


def _explain_worker(error: Exception, text: str) -> str | None:
    """Takes the message out of a worker's traceback: PyTorch passes on nothing but its text."""
    *_, file = re.findall(r'^ +File "(.+?)", line', text, re.MULTILINE)
    if not isinstance(error, OSError | ConfigError) and not is_in_package(file):
        return None
    return re.split(rf'^[\w.]*{type(error).__name__}: ', text, flags=re.MULTILINE)[-1].strip()


def is_in_package(file: str | None) -> bool:
    """Whether a file belongs to xmodal."""
    return file is not None and Path(file).is_relative_to(_PACKAGE)
