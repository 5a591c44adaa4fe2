"""The page of the benchmarks, and the commands that make it."""

import sys

import pytest
import torch

from tools.analysis import benchmark_all
from xmodal.benchmark.figures import Figures
from xmodal.benchmark.page import END, START, fill
from xmodal.errors import ConfigError
from xmodal.files import read_json


@pytest.fixture
def contents(tmp_path):
    figures = Figures('step')
    figures.add('ours over theirs', [1.5, 1.25, 2.0], 'x', '>= 1.4')
    figures.add('memory', 1234.5, 'MiB', '<= 800').add('rate', 0.98765, 's')
    figures.write(tmp_path / 'step.json')
    return {'step': read_json(tmp_path / 'step.json') | {'command': 'python tools/x.py'}}


def test_the_tables_take_the_place_between_the_marks(tmp_path, contents):
    page = tmp_path / 'page.md'
    page.write_text(f'before\n{START}\nold\n{END}\nafter\n')
    fill(page, contents)
    lines = page.read_text().splitlines()
    assert lines[0] == 'before' and lines[-1] == 'after' and 'old' not in lines
    assert '| ours over theirs, × | 1.5 | 1.25 … 2 | ≥ 1.4 | yes |' in lines
    assert '| memory, MiB | 1,234 |  | ≤ 800 | no |' in lines
    assert '| rate, s | 0.988 |  |  |  |' in lines
    assert 'python tools/x.py' in lines
    first = page.read_text()
    fill(page, contents)
    assert page.read_text() == first


@pytest.mark.parametrize('text', ['', START, f'{END}\n{START}'])
def test_a_page_without_the_marks_is_named_and_stays(tmp_path, contents, text):
    page = tmp_path / 'page.md'
    page.write_text(text)
    with pytest.raises(ConfigError, match=r'page.md: expected the lines'):
        fill(page, contents)
    assert page.read_text() == text


# Figures are written from those beside it: their own writer imports PyTorch.
SCRIPT = """
import json
import sys
if '--fail' in sys.argv:
    sys.exit(3)
with open(__file__ + '.json') as file:
    content = json.load(file)
content['name'] = sys.argv[1]
content['figures'][0]['value'] = float(len(sys.argv))
with open(sys.argv[sys.argv.index('--json') + 1], 'w') as file:
    json.dump(content, file)
"""


@pytest.fixture
def tool(tmp_path, monkeypatch):
    (tmp_path / 'bench.py').write_text(SCRIPT)
    Figures('bench').add('words', 0.0, 'words').write(tmp_path / 'bench.py.json')
    (tmp_path / 'page.md').write_text(f'{START}\n{END}\n')
    commands = {
        'one': 'bench.py first --peer PEERS/ALBEF',
        'two': 'bench.py second --images FOLDER',
        'bad': 'bench.py third --fail',
        'gpu_one': 'bench.py fourth',
    }
    monkeypatch.setattr(benchmark_all, 'BENCHMARKS', commands)
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    monkeypatch.setattr(benchmark_all, 'FOLDER', tmp_path)

    def call(*arguments):
        files = ['--json', str(tmp_path / 'all.json'), '--page', str(tmp_path / 'page.md')]
        monkeypatch.setattr(sys, 'argv', ['benchmark_all.py', *files, *arguments])
        benchmark_all.main()

    return call


def test_commands_run_with_their_folders_and_are_shown_without_them(tool, tmp_path):
    tool('--peers', '/somewhere', '--only', 'one')
    tool('--images', '/photographs', '--only', 'two')
    content = read_json(tmp_path / 'all.json')
    assert content['one']['command'] == 'python tools/analysis/bench.py first --peer PEERS/ALBEF'
    assert [content[name]['figures'][0]['value'] for name in content] == [6, 6]
    page = (tmp_path / 'page.md').read_text()
    assert page.index('### First') < page.index('### Second')
    assert '/somewhere' not in page and '/photographs' not in page


def test_without_folders_the_literal_version_runs_and_a_failure_stops_no_other(
    tool, tmp_path, capfd
):
    with pytest.raises(RuntimeError, match='failed: bad'):
        tool()
    content = read_json(tmp_path / 'all.json')
    assert list(content) == ['one']
    assert content['one']['command'] == 'python tools/analysis/bench.py first'
    assert 'needs --images FOLDER' in capfd.readouterr().out
    with pytest.raises(ConfigError, match='two needs --images FOLDER'):
        tool('--only', 'two')


def test_a_gpu_runs_its_own_benchmarks_and_nothing_else_does(tool, tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match='--only gpu_one: it is for a GPU, and none is visible'):
        tool('--only', 'gpu_one')
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    monkeypatch.setattr(torch.cuda, 'get_device_name', lambda: 'a GPU')
    tool()
    assert list(read_json(tmp_path / 'all.json')) == ['gpu_one']
