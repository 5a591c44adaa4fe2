"""Trials: what a wrong file or a wrong argument leads to, judged and counted.

A trial calls one thing with one wrong input. It ends in one of these ways; the first two are right:

=============  =====================================================================================
``sentence``   an error that the command line shows as one sentence, which names the file or the key
``handled``    the input is taken as documented: a right value, or a wrong one that is skipped,
               counted and listed
``silent``     a wrong input is taken without a word
``traceback``  an error that reads as a bug of the project, or that does not name the file
``hang``       it does not end in time
``memory``     it takes more than 1 GB
=============  =====================================================================================
"""

import contextlib
import io
import re
import reprlib
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from xmodal.engine.errors import explain

ENDS = ('sentence', 'handled', 'silent', 'traceback', 'hang', 'memory')
RIGHT_ENDS = ENDS[:2]
LIMIT_BYTES = 1 << 30
MAX_SENTENCE = 2000  # characters: longer ones show content that nobody reads
# What Python says when code stumbles over a value: it names neither a field nor what was expected.
_STUMBLES = re.compile(
    'object has no attribute|object is not|NoneType|unhashable|indices must|unsupported operand'
    '|not supported between|values to unpack|argument must be|out of range|could not convert'
    '|Unknown format code|invalid literal|required positional'
)


class Hang(BaseException):
    """A call that does not end in time; no ``except Exception`` of the called code catches it."""


class Trial(NamedTuple):
    """How one trial ended.

    Attributes:
        end: one of ``ENDS``.
        message: the sentence, the error, or what was returned.
        given: the wrong input, as a test shows it.
    """

    end: str
    message: str
    given: str


class Trials:
    """Runs trials and counts their ends.

    Args:
        counts: trials by subject (the reader or tool) and end.
    """

    def __init__(self, counts: Counter[tuple[str, str]]) -> None:
        self.counts = counts

    def run(
        self,
        subject: str,
        given: object,
        call: Callable[[], object],
        names: Sequence[str | Path],
        is_right: bool | Callable[[object], bool] = False,
        seconds: float = 10,
    ) -> Trial:
        """Runs a trial.

        Args:
            subject: the reader or the tool.
            given: the wrong input, for the message of a failed test.
            call: reads the input, or runs the tool: it raises, or ends with ``SystemExit``.
            names: the sentence has to name at least one of these: the file, the key.
            is_right: whether the input may be taken, or a function that judges what ``call``
                returned.
            seconds: the time limit.
        """
        shown = given if isinstance(given, str) else repr(given)
        end, message = _judge(call, [str(name) for name in names], is_right, seconds)
        self.counts[subject, end] += 1
        return Trial(end, message, shown)


def require_right(trials: Sequence[Trial]) -> None:
    """Fails unless all ended in a sentence or a stated handling, and shows the smallest input."""
    wrong = [trial for trial in trials if trial.end not in RIGHT_ENDS]
    if not wrong:
        return
    smallest = min(wrong, key=lambda trial: len(trial.given))
    by_end = Counter(trial.end for trial in wrong)
    raise AssertionError(
        f'{len(wrong)} of {len(trials)} trials ended wrong, {dict(by_end)}. The smallest input:\n'
        f'  given: {smallest.given[:1000]}\n  {smallest.end}: {smallest.message[:1000]}'
    )


def run_tool(arguments: Sequence[str], seconds: float = 60, **options) -> None:
    """Runs a tool in a process of its own, as the ``call`` of a trial.

    Raises:
        SystemExit: with the tool's exit status; its stderr is printed to this process's.
        Hang: when the tool does not end.
    """
    command = [sys.executable, *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, **options)
    except subprocess.TimeoutExpired:
        raise Hang from None
    sys.stderr.write(done.stderr.decode(errors='replace'))
    raise SystemExit(done.returncode)


def _judge(
    call: Callable[[], object], names: list[str], is_right: bool | Callable, seconds: float
) -> tuple[str, str]:
    """The end of a trial, and its message."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed), _bounded(seconds):
            result = call()
    except Hang:
        return 'hang', f'no end after {seconds} s'
    except MemoryError as error:
        return 'memory', repr(error)
    except SystemExit as error:
        if error.code:
            return _judge_tool(printed.getvalue(), names)
        result = printed.getvalue()
    except Exception as error:
        return _judge_error(error, names)
    right = is_right(result) if callable(is_right) else is_right
    return ('handled' if right else 'silent'), f'returned {reprlib.repr(result)}'


def _judge_error(error: Exception, names: list[str]) -> tuple[str, str]:
    sentence = explain(error)
    if sentence is None:
        return 'traceback', f'{type(error).__module__}.{type(error).__name__}: {error}'
    return _judge_sentence(sentence, names)


def _judge_tool(text: str, names: list[str]) -> tuple[str, str]:
    """The end of a tool that exited with a status other than 0, by what it printed to stderr."""
    if 'Traceback (most recent call last)' in text:
        return 'traceback', text[-1000:]
    _, found, sentence = text.partition('error: ')
    if not found:
        return 'traceback', f'exit status other than 0 without a sentence: {text[-1000:]!r}'
    return _judge_sentence(sentence, names)


def _judge_sentence(sentence: str, names: list[str]) -> tuple[str, str]:
    if not any(name in sentence for name in names):
        return 'traceback', f'names none of {names}: {sentence}'
    if stumble := _STUMBLES.search(sentence):
        return 'traceback', f'{stumble[0]!r} is no sentence: {sentence}'
    if len(sentence) > MAX_SENTENCE:
        return 'traceback', f'{len(sentence)} characters are no sentence: {sentence[:300]}'
    return 'sentence', sentence


@contextlib.contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    """Limits time, and the memory that is mapped in addition to what is now."""

    def stop(*_: object) -> None:
        raise Hang

    former_limit = resource.getrlimit(resource.RLIMIT_AS)
    mapped, limit = Path('/proc/self/statm'), former_limit[0]
    if mapped.is_file():  # on Linux
        limit = int(mapped.read_bytes().split()[0]) * resource.getpagesize() + LIMIT_BYTES
    former_handler = signal.signal(signal.SIGALRM, stop)
    resource.setrlimit(resource.RLIMIT_AS, (limit, former_limit[1]))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, former_limit)
        signal.signal(signal.SIGALRM, former_handler)
