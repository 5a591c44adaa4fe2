"""The benchmark of data loading: regions, and fewer batches than it needs."""

import sys
from argparse import Namespace

import pytest

from tools.analysis import benchmark_data as tool
from xmodal.errors import ConfigError


@pytest.fixture
def call(relocated, tiny_world, tmp_path):
    """The times of a config's loading from the world of 32 scenes, in batches of a size."""

    def run(name, size):
        config = relocated(f'configs/acerpe/{name}.py', tiny_world)
        config.train_dataloader.pop('global_batch_size', None)
        config.train_dataloader.batch_size = size
        config.dump(tmp_path / 'config.py')
        args = Namespace(config=str(tmp_path / 'config.py'), batches=1, train_steps=0)
        return tool.time_config(args)

    return run


@pytest.mark.parametrize('name', ['pretrain_shapes', 'pretrain_shapes_regions'])
def test_images_and_regions_are_loaded(call, name):
    times = call(name, 4)
    assert times.pop('size') == 4
    assert len(times) == 2 and min(times.values()) > 0


def test_a_data_set_of_too_few_batches_is_a_sentence(call):
    with pytest.raises(ConfigError, match=r'1 whole batches of 32, expected more than the 2 of'):
        call('pretrain_shapes', 32)


def test_no_more_training_steps_than_batches(monkeypatch, capsys):
    monkeypatch.setattr(sys, 'argv', 'x config.py --batches 3 --train-steps 4'.split())
    with pytest.raises(SystemExit):
        tool.parse_args()
    assert '--train-steps 4, expected at most --batches 3' in capsys.readouterr().err
