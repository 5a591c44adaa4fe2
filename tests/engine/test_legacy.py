"""Checkpoints of earlier versions get the names of this one."""

import re
from collections import OrderedDict

import pytest
import torch
from runs import assert_equal, load, train

from xmodal.engine import legacy
from xmodal.engine.checkpoint import load_weights
from xmodal.engine.launch import build_runner


@pytest.fixture
def renamed(monkeypatch):
    """A version in which two parts of a model had other names."""
    keys = [(r'^former\.', 'backbone.'), (r'\.body\.', '.image_encoder.')]
    monkeypatch.setattr(legacy, 'RENAMED_KEYS', keys)


@pytest.fixture
def former(trained, renamed):
    """A checkpoint with the former names, and the checkpoint it was made of."""
    content = load(trained)
    content['state_dict'] = OrderedDict(
        (re.sub(r'^backbone\.image_encoder\.', 'former.body.', name), value)
        for name, value in content['state_dict'].items()
    )
    assert any(name.startswith('former.body.') for name in content['state_dict'])
    path = trained.with_name('former.pth')
    torch.save(content, path)
    return path, trained


def test_names_change_one_rule_after_another_and_keep_their_order(renamed):
    state_dict = OrderedDict({'former.body.a': 1, 'b': 2, 'former.c': 3})
    state_dict._metadata = {'': {'version': 1}}
    current = legacy.current_names(state_dict)
    assert list(current.items()) == [('backbone.image_encoder.a', 1), ('b', 2), ('backbone.c', 3)]
    assert current._metadata == state_dict._metadata
    assert list(state_dict) == ['former.body.a', 'b', 'former.c']


def test_a_name_that_the_model_has_stays(renamed):
    state_dict = {'former.a': 1, 'former.b': 2}
    assert legacy.current_names(state_dict, {'former.b'}) == {'backbone.a': 1, 'former.b': 2}


def test_a_model_loads_weights_with_former_names(former, tiny_config):
    path, file = former
    tiny_config.experiment_name = 'former names'
    model = build_runner(tiny_config).model
    load_weights(model, path)
    assert_equal(dict(model.state_dict()), dict(load(file)['state_dict']))


@pytest.mark.parametrize('has_only_weights', [False, True])
def test_training_begins_with_weights_with_former_names(former, tiny_config, has_only_weights):
    path, file = former
    if has_only_weights:
        torch.save(load(path)['state_dict'], path)
    tiny_config.experiment_name = f'begins {has_only_weights}'
    runner = build_runner(tiny_config)
    runner.load_checkpoint(str(path))
    expected = dict(load(file)['state_dict'])
    loaded = dict(runner.model.state_dict())
    for name in expected:
        if not name.startswith('queue.'):  # which a run does not take from another
            assert_equal(loaded[name], expected[name], name)


def test_a_run_with_former_names_resumes_to_the_same_end(former, tiny_config, tmp_path):
    path, file = former
    ends = []
    for name, checkpoint in (('current', file), ('former', path)):
        work_dir = tmp_path / name
        train(tiny_config, work_dir=str(work_dir), load_from=str(checkpoint), resume=True)
        ends.append(load(work_dir / 'epoch_2.pth')['state_dict'])
    assert_equal(*ends)
