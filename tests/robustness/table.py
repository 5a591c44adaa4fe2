"""A pytest plugin: the table of trials at the end of a session, with worker processes as without.

``tests/conftest.py`` loads it, since the process that prints for workers collects no tests.
"""

from collections import Counter

import pytest

ENDS = ('sentence', 'handled', 'silent', 'traceback', 'hang', 'memory')
COUNTS = pytest.StashKey[Counter]()


def pytest_addoption(parser):
    parser.addoption(
        '--all-trials', action='store_true', help='trials that are sampled otherwise: minutes'
    )


def pytest_configure(config):
    config.stash[COUNTS] = Counter()


def pytest_sessionfinish(session):
    if hasattr(session.config, 'workeroutput'):
        counts = session.config.stash[COUNTS]
        session.config.workeroutput['trials'] = [[*key, n] for key, n in counts.items()]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    for subject, end, count in getattr(node, 'workeroutput', {}).get('trials', ()):
        node.config.stash[COUNTS][subject, end] += count


def pytest_terminal_summary(terminalreporter, config):
    counts = config.stash[COUNTS]
    if not counts:
        return
    terminalreporter.section('trials (tests/robustness/trials.py says what the columns mean)')
    subjects = sorted({subject for subject, _ in counts})
    rows = [(subject, [counts[subject, end] for end in ENDS]) for subject in subjects]
    rows.append(('all', [sum(column) for column in zip(*(row for _, row in rows), strict=True)]))
    width = max(len(subject) for subject, _ in rows)
    for subject, row in [('', ENDS), *rows]:
        total = 'trials' if row is ENDS else sum(row)
        cells = ''.join(f'{cell:>11}' for cell in (*row, total))
        terminalreporter.write_line(f'{subject:<{width}}{cells}')
