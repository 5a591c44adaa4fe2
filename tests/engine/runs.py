"""Runs for tests: started, cut short, compared."""

import itertools

import torch
from mmengine.hooks import Hook

from xmodal.engine.launch import build_runner
from xmodal.registry import HOOKS

RUN_NUMBERS = itertools.count()
# A config holds no functions: hooks of the tests are found here by their index.
CALLS = []


@HOOKS.register_module(force=True)
class CallAt(Hook):
    """Calls a function before one iteration."""

    def __init__(self, iteration, index):
        self.iteration, self.index = iteration, index

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if runner.iter == self.iteration:
            CALLS[self.index](runner)


def call_at(iteration, function):
    CALLS.append(function)
    return dict(type='CallAt', iteration=iteration, index=len(CALLS) - 1)


def train(config, **changes):
    """Trains a copy of a config and returns the runner."""
    config = config.copy()
    config.experiment_name = str(next(RUN_NUMBERS))  # the loggers of one process need names
    config.merge_from_dict(changes)
    runner = build_runner(config)
    runner.train()
    return runner


def load(path):
    return torch.load(path, weights_only=True)


def assert_equal(one, other, path=''):
    """Every tensor bit for bit, at any depth."""
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, other), path
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), path
        for key in one:
            assert_equal(one[key], other[key], f'{path}.{key}')
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), path
        for index, pair in enumerate(zip(one, other, strict=True)):
            assert_equal(*pair, f'{path}[{index}]')
    elif not isinstance(one, str):
        assert one == other, path


def assert_same_end(whole, resumed):
    for key in ('state_dict', 'optimizer', 'param_schedulers'):
        assert_equal(load(whole)[key], load(resumed)[key], key)


def stop(runner):
    raise KeyboardInterrupt
