"""The benchmark of a pre-training step."""

import json

import pytest
import torch
from mmengine.config import Config

from tools.analysis import benchmark_pretrain
from xmodal.benchmark import albef_peer
from xmodal.benchmark.pretraining import PretrainingStep
from xmodal.errors import ConfigError


@pytest.fixture
def config(tmp_path):
    """A tiny file of albef_4m.py."""
    config = Config.fromfile('configs/acerpe/albef_4m.py')
    backbone = config.model.backbone
    backbone.image_encoder.update(image_size=32, depth=1, embed_dim=64, num_heads=2)
    backbone.text_encoder.config = dict(
        hidden_size=64, num_attention_heads=2, intermediate_size=64, vocab_size=100
    )
    backbone.text_encoder.num_layers = 1
    backbone.fusion.update(depth=1, embed_dims=64, num_heads=2)
    config.model.queue_length = 8
    config.dump(tmp_path / 'tiny.py')
    return str(tmp_path / 'tiny.py')


@pytest.fixture
def arguments(config, monkeypatch):
    """Reads a command line that begins with the config."""

    def parse(*line):
        monkeypatch.setattr('sys.argv', ['benchmark_pretrain.py', config, *line])
        return benchmark_pretrain.parse_args()

    return parse


def test_a_step_is_the_configs_and_leaves_no_gradient(config):
    step = PretrainingStep(config, None, batch_size=2, words=None, amp=False)
    assert step.batch.input_ids.shape == (2, 25)  # ALBEF's length
    groups = step.wrapper.optimizer.param_groups
    assert [group['weight_decay'] for group in groups] == [0.02, 0.0]
    before = [p.detach().clone() for p in step.model.parameters()]
    assert set(step.losses()) == {'loss_itc', 'loss_itm', 'loss_mlm'}
    step()
    moved = [not old.equal(new) for old, new in zip(before, step.model.parameters(), strict=True)]
    assert sum(moved) > 0.9 * len(moved)
    assert all(p.grad is None for p in step.model.parameters())


def test_another_position_takes_the_place_of_the_configs(config):
    step = PretrainingStep(config, 'ace_rpe', batch_size=2, words=7, amp=False)
    assert type(step.model.backbone.position).__name__ == 'AnchorRelativePosition'
    assert step.batch.input_ids.shape == (2, 7)


def test_ratios_are_medians_over_the_rounds(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv('COLUMNS', '200')
    args = arguments('--batch-size', '2')
    results = {
        'ALBEF': {'seconds': [2.0, 3.0, 8.0], 'memory': 4.0, 'flops': 6e9},
        'xmodal': {'seconds': [1.0, 2.0, 2.0], 'memory': 3.0, 'flops': 5e9},
    }
    rates = {'ALBEF': 4e9, 'xmodal': 5e9}
    benchmark_pretrain.report(args, results, rates).write(tmp_path / 'figures.json')
    printed = capsys.readouterr().out
    for cell in ('x 2.000', '1.50 - 4.00', 'x 0.750', '50.0%'):
        assert cell in printed
    figures = {f['key']: f for f in json.loads((tmp_path / 'figures.json').read_text())['figures']}
    speed = figures['xmodal, speed over ALBEF']
    assert (speed['value'], speed['low'], speed['high']) == (2.0, 1.5, 4.0)
    assert speed['bar'] == '>= 1.4' and speed['holds']
    assert figures['xmodal, MFU']['value'] == 0.5


def test_a_difference_is_relative_to_the_largest_number():
    theirs = {'a': torch.tensor([4.0, 0.0]), 'b': torch.tensor([1.0])}
    ours = {'a': torch.tensor([4.0, 0.2]), 'b': torch.tensor([1.1]), 'c': torch.tensor([9.0])}
    assert benchmark_pretrain.largest_difference(ours, theirs) == pytest.approx(0.05)


def test_a_folder_without_the_peers_code_is_a_sentence(tmp_path):
    with pytest.raises(ConfigError, match=r'has no models/model_pretrain\.py: expected ALBEF'):
        albef_peer.load(tmp_path, None, 256, 8)
