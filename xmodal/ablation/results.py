"""Results of finished runs in one file, to publish them and to compare with them.

The file is a zip: for each run, in the folder that it has below the root of all runs, its metrics,
its results query by query, and the record of the settings that it was made with.
"""

import json
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from xmodal.ablation.runs import Run, differences
from xmodal.files import atomic_write, explain_errors

LAYOUT = 'the results of runs that tools/ablate.py --results wrote'
_DATE = (1980, 1, 1, 0, 0, 0)  # the same results make the same file


@contextmanager
def shared_results(runs: list[Run], root: Path, file: Path | None) -> Iterator[None]:
    """Takes results from a file, and adds new ones to it at the end, also after a failure.

    Args:
        runs: of plans.
        root: folder of all tables' runs.
        file: the zip, which need not be there; None for none.
    """
    if file is None:
        yield
        return
    if file.is_file():
        for sentence in load_results(runs, root, file):
            print(f'not taken from {file}: {sentence}')
    try:
        yield
    finally:
        save_results(runs, root, file)


def load_results(runs: Iterable[Run], root: Path, file: Path) -> list[str]:
    """Puts results into the folders of runs that have none.

    Args:
        runs: of plans.
        root: folder of all tables' runs.
        file: the zip.

    Returns:
        For each run whose settings are others now, which is left out: a sentence.

    Raises:
        FileError: when the file is no such zip.
    """
    left_out = []
    with explain_errors(file, LAYOUT), zipfile.ZipFile(file) as archive:
        names = set(archive.namelist())
        for run in runs:
            folder = run.folder.relative_to(root).as_posix()
            record = f'{folder}/{run.record_file.name}'
            if run.metrics() is not None or record not in names:
                continue
            made_with = json.loads(archive.read(record))['settings']
            if changed := differences(made_with, run.settings()):
                left_out.append(f'{run}: made with other settings: {changed[0]}')
                continue
            # The metrics come last: a run that has them has all.
            for path in (run.record_file, run.queries_file, run.metrics_file):
                if f'{folder}/{path.name}' in names:
                    with atomic_write(path) as new:
                        new.write_bytes(archive.read(f'{folder}/{path.name}'))
    return left_out


def save_results(runs: Iterable[Run], root: Path, file: Path) -> None:
    """Adds the results of all measured runs to the file, beside those that it has of others.

    Args:
        runs: of plans.
        root: folder of all tables' runs.
        file: the zip; a new one is made where there is none.
    """
    known: dict[str, bytes] = {}
    if file.is_file():
        with explain_errors(file, LAYOUT), zipfile.ZipFile(file) as archive:
            known = {name: archive.read(name) for name in archive.namelist()}
    contents = dict(known)
    for run in runs:
        if run.metrics() is None:
            continue
        for path in (run.record_file, run.queries_file, run.metrics_file):
            if path.is_file():
                contents[path.relative_to(root).as_posix()] = path.read_bytes()
    if contents == known:
        return
    with atomic_write(file) as new, zipfile.ZipFile(new, 'w', zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(contents):
            entry = zipfile.ZipInfo(name, _DATE)
            archive.writestr(entry, contents[name], zipfile.ZIP_DEFLATED)
