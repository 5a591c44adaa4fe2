"""The judge of trials: each end is recognised, and a failed test shows the smallest input."""

import time
from collections import Counter

import pytest
from trials import Hang, Trials, require_right, run_tool

from xmodal.files import FileError


def end_of(call, **options):
    counts = Counter()
    trial = Trials(counts).run('subject', 'given', call, ['file.json'], **options)
    assert counts == {('subject', trial.end): 1}
    return trial.end


def raises(error):
    def call():
        raise error

    return call


def unexplained():
    """A bug: the error is raised outside of the project."""
    int('x')


def test_errors_are_sentences_when_the_project_raises_them_and_they_name_the_file(tmp_path):
    from xmodal.files import read_json

    (tmp_path / 'file.json').write_text('{')
    assert end_of(lambda: read_json(tmp_path / 'file.json')) == 'sentence'
    assert end_of(lambda: open(tmp_path / 'file.json' / 'x')) == 'sentence'
    assert end_of(lambda: read_json(tmp_path / 'other.json')) == 'traceback'
    assert end_of(unexplained) == 'traceback'
    assert end_of(raises(KeyError('file.json'))) == 'traceback'


def test_what_is_taken_is_silent_unless_it_is_right():
    assert end_of(lambda: 3) == 'silent'
    assert end_of(lambda: 3, is_right=True) == 'handled'
    assert end_of(lambda: 3, is_right=lambda result: result == 4) == 'silent'


def test_time_and_memory_are_bounded():
    def hide():
        try:
            time.sleep(5)
        except Exception:
            pass

    assert end_of(hide, seconds=0.05) == 'hang'
    assert end_of(lambda: bytearray(3 << 30)) == 'memory'


def test_a_tool_is_judged_by_its_exit_status_and_what_it_prints():
    def tool(code):
        return lambda: run_tool(['-S', '-c', f'import sys; {code}'])

    assert end_of(tool('sys.exit("error: file.json is missing")')) == 'sentence'
    assert end_of(tool('sys.exit("error: it is missing")')) == 'traceback'
    assert end_of(tool('sys.exit(3)')) == 'traceback'
    assert end_of(tool('open("file.json/x")')) == 'traceback'
    assert end_of(tool('sys.exit(0)')) == 'silent'
    with pytest.raises(Hang):
        run_tool(['-S', '-c', 'import time; time.sleep(9)'], seconds=0.1)


def test_the_smallest_failing_input_is_shown():
    trials = Trials(Counter())
    results = [trials.run('s', given, unexplained, []) for given in ('xxx', 'x', 'xx')]
    right = trials.run('s', '', raises(FileError('f')), ['f'])
    require_right([right._replace(end='sentence')])
    with pytest.raises(AssertionError, match=r'3 of 4 .* ended wrong(?s:.*)given: x\n.*ValueError'):
        require_right([*results, right._replace(end='sentence')])
