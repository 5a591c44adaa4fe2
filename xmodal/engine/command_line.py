"""Arguments of the tools. Nothing here imports PyTorch, so that ``--help`` is quick."""

import argparse
import ast
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mmengine.config import DictAction

_QUOTED = re.compile(r"""(['"])((?!\1).)*\1""")


class ShowDefaults(argparse.ArgumentDefaultsHelpFormatter):
    """Help texts that show the default, if there is one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        has_default = action.default is not None and action.default is not False
        return action.help if not has_default else super()._get_help_string(action)


def at_least(least: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number, for ``argparse``."""

    def whole(text: str) -> int:
        if not text.strip().lstrip('+-').isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(
                f'expected a whole number of at least {least}, got {text}'
            )
        return int(text)

    return whole


def not_negative(text: str) -> float:
    """The type of an argument that is a number of at least 0, for ``argparse``."""
    return _number(text, 'of at least 0', lambda number: number >= 0)


def positive(text: str) -> float:
    """The type of an argument that is a number above 0, for ``argparse``."""
    return _number(text, 'above 0', lambda number: number > 0)


def _number(text: str, range_: str, is_in_range: Callable[[float], bool]) -> float:
    try:
        number = float(text) if text.isascii() else math.nan
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and is_in_range(number)):
        raise argparse.ArgumentTypeError(f'expected a number {range_}, got {text}')
    return number


def refuse_folder(parser: argparse.ArgumentParser, option: str, path: Path | None) -> None:
    """Ends with the usage where an option that names a file to write names a folder."""
    if path and path.is_dir():
        parser.error(f'{option} {path} is a folder: give a file in it')


class Options(DictAction):
    """The type of ``--cfg-options``: any number of KEY=VALUE."""

    def __call__(self, parser: argparse.ArgumentParser, *args) -> None:
        """Ends with the usage where MMEngine cannot read a value."""
        try:
            super().__call__(parser, *args)
        except (ValueError, AssertionError, RecursionError) as error:
            _, given, *_ = args
            parser.error(f'--cfg-options {" ".join(given)}: expected KEY=VALUE, got {error}')

    @staticmethod
    def _parse_iterable(val: str) -> Any:
        return read_value(val)


def read_value(text: str) -> Any:
    """The value that a text stands for on a command line: ``1e-3``, ``a b``, ``1,2``, ``["a b"]``.

    A text with commas is a list, unless it is in quotes: ``'a,b'``. What is in brackets is read as
    Python does, or else as MMEngine does, which needs no quotes but deletes all spaces.
    """
    bare = text.strip('\'"')
    if bare.startswith(('(', '[')):
        try:
            value = ast.literal_eval(bare)
        except (ValueError, SyntaxError):
            value = None
        if isinstance(value, list | tuple):
            return value
    elif ',' not in text or _QUOTED.fullmatch(text):
        return DictAction._parse_int_float_bool(bare)
    return DictAction._parse_iterable(text)


def write_value(value: Any) -> str:
    """The text that :func:`read_value` reads as a value, if there is one."""
    text = str(value)
    return repr(text) if ',' in text and isinstance(value, str | Path) else text


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of MMEngine's tools."""
    parser.add_argument('--work-dir', help='folder for logs and checkpoints')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=Options,
        help='override keys of the config: a.b=1 c.d="[1, 2]"',
    )
    parser.add_argument('--launcher', choices=['none', 'pytorch', 'slurm', 'mpi'], default='none')
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0)
