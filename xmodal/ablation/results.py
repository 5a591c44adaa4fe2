"""Results of finished runs in files, to publish them and to compare with them.

A file is a ``.tar.xz``: for each run, in the folder that it has below the root of all runs, its
metrics, its results query by query without their scores, and the record of its settings and times.
A run that is only trained, for others to start from, has the record alone.
"""

import fcntl
import io
import json
import lzma
import os
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from xmodal.ablation.runs import Run, differences
from xmodal.errors import FileError
from xmodal.evaluation.queries import SEPARATOR
from xmodal.files import atomic_write, explain_errors

_LAYOUT = 'results of runs that tools/ablate.py --results wrote'


@contextmanager
def shared_results(runs: list[Run], root: Path, *files: Path) -> Iterator[Path]:
    """Takes results from files, and adds new ones to the last at the end, also after a failure.

    Args:
        runs: of plans.
        root: folder of all tables' runs.
        files: in which results are looked for in turn; they need not be there.

    Yields:
        Where the results are: ``root``.

    Raises:
        FileError: when one is another file.
    """
    for file in files:
        _take(runs, root, file, root)
    try:
        yield root
    finally:
        for sentence in _save(runs, root, files):
            print(f'not added: {sentence}')


@contextmanager
def unpacked_results(runs: list[Run], root: Path, *files: Path) -> Iterator[Path]:
    """Takes results as :func:`shared_results`, and leaves ``root`` and the files as they are.

    Yields:
        Where the results are: a temporary folder, with a run's below it as below ``root``.

    Raises:
        FileNotFoundError: when one is not there: nothing will write it.
        FileError: when one is another file.
    """
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(f'{file} does not exist; expected {_LAYOUT}')
    with TemporaryDirectory() as folder:
        for file in files:
            _take(runs, root, file, Path(folder))
        yield Path(folder)


def _contents(file: Path) -> dict[str, bytes]:
    """The files in it, by name; none where there is no such file yet."""
    if not file.is_file():
        return {}
    with explain_errors(file, _LAYOUT):
        try:
            with tarfile.open(file, 'r:xz') as archive:
                members = [member for member in archive if member.isfile()]
                return {member.name: archive.extractfile(member).read() for member in members}
        except (tarfile.TarError, lzma.LZMAError) as error:
            raise FileError(f'{file}: {error}; expected {_LAYOUT}') from error


def _take(runs: Iterable[Run], root: Path, file: Path, target: Path) -> None:
    """Puts results of runs that have none below ``target``, and names those with other settings."""
    contents = _contents(file)
    for run in runs:
        record = _name(run.record_file, root)
        is_measured = _name(run.metrics_file, root) in contents
        last = run.metrics_file if is_measured else run.record_file
        taken = (target / _name(last, root)).is_file()  # from a file before this one
        if last.is_file() or taken or record not in contents:
            continue
        if own := _own_training(run):
            print(f'not taken from {file}: {run}: {own} has a training of yours, not tested')
            continue
        made_with = json.loads(contents[record])['settings']
        if changed := differences(made_with, run.settings):
            print(f'not taken from {file}: {run}: made with other settings: {changed[0]}')
            continue
        # The metrics come last: a run that has them has all.
        for path in (run.record_file, run.queries_file, run.metrics_file):
            name = _name(path, root)
            if content := contents.get(name):
                with atomic_write(target / name) as new:
                    new.write_bytes(content)


def _own_training(run: Run) -> Path | None:
    """The folder of a training of the user's whose figures a run would have."""
    if any(run.folder.glob('*.pth')) or run.is_begun:
        return run.folder
    trained = [] if run.stage.trains else run.needs  # a test's checkpoint, an ensemble's parts
    return next(filter(None, map(_own_training, trained)), None)


def _save(runs: Iterable[Run], root: Path, files: Sequence[Path]) -> list[str]:
    """Adds the results of all finished runs that no file has to the last one.

    Returns:
        For each run that the last file has another result of, which stays: a sentence.
    """
    new, kept = {}, []
    with _locked(files[-1].parent):
        of_files = [_contents(file) for file in files]
        for run in runs:
            is_measured = run.metrics() is not None
            is_finished = is_measured or (not run.is_tested and run.is_trained)
            if not is_finished or not run.record_file.is_file():
                continue
            results = (run.record_file, run.metrics_file)[: 1 + is_measured]
            own = {_name(path, root): path.read_bytes() for path in results}
            if any(_has(contents, own) for contents in of_files):
                continue
            there = own.keys() & of_files[-1].keys()
            if not _has(of_files[-1], {name: own[name] for name in there}):
                kept.append(f'{run}: {files[-1]} has another result of this run; give another file')
                continue
            new |= own
            if is_measured and run.queries_file.is_file():
                new[_name(run.queries_file, root)] = _small_queries(run)
        if new:
            _write(files[-1], of_files[-1] | new)
    return kept


def _has(contents: dict[str, bytes], own: dict[str, bytes]) -> bool:
    """Whether a file has a run with the same outcome."""
    return own.keys() <= contents.keys() and all(
        _outcome(contents[name]) == _outcome(content) for name, content in own.items()
    )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Waits for other processes that add results to a file of the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _name(path: Path, root: Path) -> str:
    """The name of a run's file in the archive."""
    return path.relative_to(root).as_posix()


def _outcome(content: bytes) -> dict:
    """Metrics, or a record without the time that its run took."""
    return {key: value for key, value in json.loads(content).items() if key != 'seconds'}


def _write(file: Path, contents: dict[str, bytes]) -> None:
    with atomic_write(file) as new, tarfile.open(new, 'w:xz') as archive:
        for name in sorted(contents):
            member = tarfile.TarInfo(name)  # without a date: the same results, the same file
            member.size = len(contents[name])
            archive.addfile(member, io.BytesIO(contents[name]))


def _small_queries(run: Run) -> bytes:
    """The results query by query, for the compression of all runs at once.

    Scores are left out, unless a metric has this name: nothing compares them, and they are most of
    what a file would have.
    """
    arrays = {}
    with np.load(run.queries_file) as content:
        for name in content:
            if not name.endswith(f'{SEPARATOR}score') or 'score' in run.metrics():
                values = content[name]
                arrays[name] = np.array(values.tolist()) if values.dtype.kind == 'U' else values
    output = io.BytesIO()
    np.savez(output, **arrays)
    return output.getvalue()
