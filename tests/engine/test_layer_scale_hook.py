"""The statistics of token types' scales."""

import json
import math
from types import SimpleNamespace

import pytest
import torch
from mmengine.logging import MessageHub
from timm.layers import LayerScale
from torch import nn

from xmodal.engine.hooks import LayerScaleStatsHook
from xmodal.engine.hooks.layer_scale import FILE, largest_channels, scale_statistics
from xmodal.models.necks import TokenTypeEmbedding


def planted():
    """Two of 768 channels at 0.3, the others as they began."""
    gamma = torch.full((768,), 1e-5)
    gamma[5], gamma[100] = 0.3, 0.3
    return gamma


def test_a_planted_scale():
    statistics = scale_statistics(planted(), 1e-5)
    assert statistics['mean'] == pytest.approx(7.9e-4, rel=0.01)
    assert statistics['std'] == pytest.approx(1.5e-2, rel=0.03)
    assert statistics['max'] == pytest.approx(0.3)
    assert statistics['participation'] == pytest.approx(2, rel=1e-3)
    assert statistics['share_above'] == pytest.approx(2 / 768)


def test_a_scale_may_be_negative():
    gamma = planted()
    gamma[100] *= -1
    statistics = scale_statistics(gamma, 1e-5)
    assert statistics['mean'] == pytest.approx(1e-5, rel=0.01), 'the mean sees nothing'
    assert statistics['mean_abs'] == pytest.approx(7.9e-4, rel=0.01)
    assert statistics['max_abs'] == pytest.approx(0.3)
    assert statistics['share_above'] == pytest.approx(2 / 768)
    gamma[7] = -0.5
    assert [channel for channel, _ in largest_channels(gamma)][:1] == [7]
    assert scale_statistics(gamma, 1e-5)['max'] == pytest.approx(0.3)
    assert scale_statistics(gamma, 1e-5)['max_abs'] == pytest.approx(0.5)


def test_participation_of_equal_channels_is_their_number():
    assert scale_statistics(torch.full((40,), 1e-5), 1e-5)['participation'] == pytest.approx(40)


def test_the_ten_largest_channels_are_named():
    gamma = torch.arange(-20.0, 8.0)
    assert largest_channels(gamma) == [(channel, float(channel - 20)) for channel in range(10)]


class Model(nn.Module):
    """Types under an unusual name, next to the scale of a block and a teacher's copy."""

    def __init__(self, layer_scale=1e-5):
        super().__init__()
        self.odd_name = TokenTypeEmbedding(6, layer_scale=layer_scale)
        self.block = LayerScale(6, 0.2)
        self.teacher = TokenTypeEmbedding(6, layer_scale=0.7).requires_grad_(False)

    def forward(self, images, texts):
        return self.odd_name(images, 'image'), self.odd_name(self.block(texts), 'text')


class Runner(SimpleNamespace):
    """As much of a runner as the hook looks at."""

    def __init__(self, model, work_dir):
        super().__init__(
            model=model,
            work_dir=work_dir,
            iter=0,
            epoch=0,
            train_dataloader=[0, 1, 2],
            scalars=[],
            logger=SimpleNamespace(info=lambda text: self.told.append(text)),
            told=[],
            message_hub=MessageHub('of the test'),
        )
        add = self.scalars.append
        self.visualizer = SimpleNamespace(add_scalars=lambda scalars, step: add((step, scalars)))


def run(model, tmp_path, step=lambda model: None, epochs=2):
    runner, hook = Runner(model, tmp_path), LayerScaleStatsHook()
    images, texts = torch.ones(2, 3, 6), 2 * torch.ones(2, 3, 6)
    hook.before_train(runner)
    for _ in range(epochs):
        for batch_idx in runner.train_dataloader:
            hook.before_train_iter(runner, batch_idx)
            model(images, texts)
            step(model)
            hook.after_train_iter(runner, batch_idx)
            runner.iter += 1
        hook.after_train_epoch(runner)
        runner.epoch += 1
    hook.after_train(runner)
    return runner


@torch.no_grad()
def test_it_logs_start_epochs_and_end_of_the_types_scale_alone(tmp_path):
    model = Model()

    def step(model):
        model.odd_name.gamma += 0.1

    runner = run(model, tmp_path, step)
    records = json.loads((tmp_path / FILE).read_text())
    assert [(r['when'], r['iteration']) for r in records] == [
        ('start', 0),
        ('epoch 1', 3),
        ('epoch 2', 6),
        ('end', 6),
    ]
    assert all(list(record['scales']) == ['odd_name'] for record in records)
    means = [record['scales']['odd_name']['mean'] for record in records]
    assert means == pytest.approx([1e-5, 0.30001, 0.60001, 0.60001])
    assert [step for step, _ in runner.scalars] == [0, 3, 6, 6]
    assert runner.scalars[1][1]['odd_name/mean'] == pytest.approx(0.30001)
    assert 'odd_name/largest' not in runner.scalars[1][1]


@torch.no_grad()
def test_shares_are_measured_against_the_tokens_that_the_type_is_added_to(tmp_path):
    model = Model()
    model.odd_name.type_embeddings.copy_(torch.tensor([[3.0] * 6, [4.0] * 6]))
    model.odd_name.gamma.fill_(0.5)
    run(model, tmp_path)
    for record in json.loads((tmp_path / FILE).read_text()):
        statistics = record['scales']['odd_name']
        assert statistics['share_image'] == pytest.approx(0.5 * 4 / 1)
        assert statistics['share_text'] == pytest.approx(0.5 * 3 / (2 * 0.2))
    assert math.isfinite(statistics['std'])


@torch.no_grad()
def test_types_without_a_scale_have_shares_alone(tmp_path):
    run(Model(layer_scale=None), tmp_path)
    records = json.loads((tmp_path / FILE).read_text())
    assert set(records[-1]['scales']['odd_name']) == {'share_image', 'share_text'}


def test_a_model_without_types_is_told_of_and_left_alone(tmp_path):
    runner, hook = Runner(nn.Linear(2, 2), tmp_path), LayerScaleStatsHook()
    hook.before_train(runner)
    hook.before_train_iter(runner, 0)
    hook.after_train_iter(runner, 0)
    hook.after_train_epoch(runner)
    assert not (tmp_path / FILE).exists()
    assert runner.told == ['LayerScaleStatsHook: the model has no token types']


@torch.no_grad()
def test_a_resumed_run_goes_on_with_the_records(tmp_path):
    hub = run(Model(), tmp_path, epochs=1).message_hub
    runner, hook = Runner(Model(), tmp_path), LayerScaleStatsHook()
    runner.iter, runner.epoch, runner.message_hub = 3, 1, hub  # as the checkpoint has it
    hook.before_train(runner)
    hook.before_train_iter(runner, 0)
    assert not hook.handles
    hook.after_train_epoch(runner)
    records = json.loads((tmp_path / FILE).read_text())
    assert [r['when'] for r in records] == ['start', 'epoch 1', 'epoch 2']
    shares = [r['scales']['odd_name']['share_text'] for r in records[1:]]
    assert shares[0] == shares[1]  # interrupted after the last iteration: none measures it again


@torch.no_grad()
def test_an_epoch_that_a_resumed_run_ends_again_has_one_record(tmp_path):
    hub = run(Model(), tmp_path, epochs=1).message_hub
    runner, hook = Runner(Model(), tmp_path), LayerScaleStatsHook()
    runner.iter, runner.message_hub = 3, hub  # by a checkpoint of its last iteration
    hook.before_train(runner)
    hook.after_train_epoch(runner)
    records = json.loads((tmp_path / FILE).read_text())
    assert [r['when'] for r in records] == ['start', 'epoch 1']
