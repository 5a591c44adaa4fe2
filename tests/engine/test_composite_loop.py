"""Several evaluations of one model."""

from types import SimpleNamespace

import pytest
from mmengine.evaluator import Evaluator

from xmodal.engine.loops import CompositeEvalLoop
from xmodal.errors import ConfigError


@pytest.fixture
def build(tmp_path):
    """Builds a loop of two test sets of questions."""
    questions = dict(type='VqaMetric', save_predictions=str(tmp_path / 'answers.json'))

    def make(**second):
        loops = {name: dict(type='PredictionLoop') for name in ('dev', 'test')}
        loops['test'] |= second
        runner = SimpleNamespace(build_evaluator=Evaluator)
        return CompositeEvalLoop(runner, SimpleNamespace(), questions, loops)

    return make


def test_two_test_sets_do_not_write_one_file(build, tmp_path):
    file = tmp_path / 'answers.json'
    with pytest.raises(ConfigError, match=rf'loops.dev and test both write {file}: give each'):
        build()
    other = dict(type='VqaMetric', save_predictions=str(tmp_path / 'others.json'))
    assert list(build(evaluator=other).loops) == ['dev', 'test']
    assert list(build(evaluator=dict(type='VqaMetric')).loops) == ['dev', 'test']
