"""The file of a benchmark's figures."""

import json
import sys

import pytest
import torch

from xmodal.benchmark.figures import Figures


def written(figures, path):
    figures.write(path)
    return json.loads(path.read_text())


def test_it_has_the_command_the_machine_and_the_versions(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, 'argv', ['/somewhere/benchmark.py', '--title', 'two words'])
    content = written(Figures('speed'), tmp_path / 'folder' / 'figures.json')
    assert content['name'] == 'speed' and content['figures'] == []
    assert content['command'] == "benchmark.py --title 'two words'"
    assert content['machine']['threads'] == torch.get_num_threads()
    assert content['machine']['processor']
    assert content['versions']['torch'] == torch.__version__


def test_figures_of_the_processor_are_not_those_of_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    monkeypatch.setattr(torch.cuda, 'get_device_name', lambda: 'a GPU')
    for device, gpu in ((None, 'a GPU'), ('cuda', 'a GPU'), ('cpu', None)):
        content = written(Figures('speed', device), tmp_path / 'figures.json')
        assert content['machine']['gpu'] == gpu


def test_of_rounds_the_median_counts(tmp_path):
    content = written(Figures('x').add('step', [5.0, 1.0, 2.0], 's'), tmp_path / 'figures.json')
    expected = {'key': 'step', 'unit': 's', 'value': 2, 'low': 1, 'high': 5, 'rounds': 3}
    assert content['figures'] == [expected]


@pytest.mark.parametrize(
    ('value', 'bar', 'holds'),
    [(1.4, '>= 1.4', True), (1.39, '>= 1.4', False), (0.8, '<= 0.8', True), (0.9, '<= 0.8', False)],
)
def test_it_says_whether_a_bar_is_reached(value, bar, holds):
    figure = Figures('x').add('ratio', value, 'x', bar).figures[0]
    assert figure['holds'] is holds and figure['bar'] == bar


@pytest.mark.parametrize('bar', ['1.4', '> 1.4', '>=1.4', '>='])
def test_a_bar_of_another_form_is_refused(bar):
    with pytest.raises(ValueError, match='expected a form such as'):
        Figures('x').add('ratio', 1.0, 'x', bar)
