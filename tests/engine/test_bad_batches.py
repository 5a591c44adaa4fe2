"""Batches with numbers that are not finite, and what they must leave as it was."""

import pytest
import torch
from runs import call_at, train
from torch import nn

from xmodal.engine.optim import SafeAmpOptimWrapper


def spoil_images(runner):
    """Makes the image tokens of the next forward pass infinite."""

    def hook(module, _, tokens):
        handle.remove()
        return tokens._replace(embeddings=tokens.embeddings * torch.inf)

    handle = runner.model.backbone.image_encoder.register_forward_hook(hook)


def test_matching_survives_a_batch_of_tokens_that_are_not_finite(tiny_config):
    tiny_config.custom_hooks.append(call_at(2, spoil_images))
    runner = train(tiny_config)
    assert runner.optim_wrapper.skipped == 1
    assert all(p.isfinite().all() for p in runner.model.parameters())


def test_a_skipped_step_leaves_the_running_statistics_as_they_were(tiny_config):
    pooling = dict(type='TEMDE', partitions=2, centroids=2, inner_dims=2)
    tiny_config.model.backbone.update(image_pooling=pooling, text_pooling=pooling)
    seen = []

    def look(runner):
        seen.append(runner.model.backbone.image_pooling.bn1.running_var.clone())

    tiny_config.custom_hooks += [call_at(2, look), call_at(2, spoil_images), call_at(3, look)]
    runner = train(tiny_config)
    assert runner.optim_wrapper.skipped == 1 and seen[0].isfinite().all()
    torch.testing.assert_close(seen[1], seen[0], rtol=0, atol=0)
    assert not runner.model.backbone.image_pooling.bn1.running_var.equal(seen[1])


def test_a_finite_loss_without_a_finite_gradient_moves_nothing():
    model = nn.Linear(2, 1)
    before = model.weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    wrapper = SafeAmpOptimWrapper(optimizer=optimizer, clip_grad=dict(max_norm=1.0))
    loss = (model(torch.zeros(3, 2)) - model.bias).sqrt().sum()  # √0
    assert loss == 0
    wrapper.update_params(loss)
    assert not wrapper.stepped and wrapper.skipped == wrapper.skipped_in_a_row == 1
    assert model.weight.equal(before) and model.weight.grad is None
    wrapper.update_params(model(torch.ones(3, 2)).sum())
    assert wrapper.stepped and wrapper.skipped_in_a_row == 0 and not model.weight.equal(before)


@pytest.mark.parametrize('bad', [0, 1, 2])
def test_a_loss_that_is_not_finite_skips_the_whole_step_that_it_is_a_part_of(bad):
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    wrapper = SafeAmpOptimWrapper(optimizer=optimizer, accumulative_counts=3)
    weights = []
    for index in range(6):
        wrapper.update_params(model(torch.full((1, 1), torch.nan if index == bad else 0.5)).sum())
        weights.append(model.weight.item())
        assert wrapper.stepped is (index == 5)
    assert weights == [*[1.0] * 5, pytest.approx(0.5)] and wrapper.skipped == 1


@pytest.mark.parametrize('bad', [[0], [1, 2], [0, 1, 2]])
def test_steps_are_counted_and_not_the_batches_that_spoil_them(bad):
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    wrapper = SafeAmpOptimWrapper(optimizer=optimizer, accumulative_counts=3)
    counts = []
    for index in range(9):
        is_bad = index < 6 and index % 3 in bad
        wrapper.update_params(model(torch.full((1, 1), torch.nan if is_bad else 0.5)).sum())
        counts.append((wrapper.skipped, wrapper.skipped_in_a_row))
        assert wrapper.not_finite is is_bad
    assert counts[2::3] == [(1, 1), (2, 2), (2, 0)]  # after each of three steps


def test_a_run_ends_when_a_part_of_each_step_is_not_finite(tiny_config):
    tiny_config.custom_hooks += [call_at(iteration, spoil_images) for iteration in (0, 2, 4)]
    with pytest.raises(RuntimeError, match='not finite at iteration 5 .* 3 in a row'):
        train(tiny_config, **{'optim_wrapper.accumulative_counts': 2})


def test_a_step_that_the_scaler_of_float16_leaves_out_is_none():
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 1.0)
    wrapper = SafeAmpOptimWrapper(optimizer=torch.optim.SGD(model.parameters(), lr=1.0))
    wrapper.scaler = torch.amp.GradScaler('cpu', init_scale=4.0)
    for scale, in_a_row in ((2.0, 0), (1.0, 0), (0.5, 1), (0.25, 2)):
        wrapper.update_params((model.weight * 0).sum().sqrt())  # the gradient is not a number
        assert model.weight == 1 and not wrapper.stepped
        assert wrapper.scaler.get_scale() == scale and wrapper.skipped_in_a_row == in_a_row
    wrapper.update_params(model.weight.sum())
    assert model.weight == 0 and wrapper.stepped
    assert wrapper.skipped == 4 and wrapper.skipped_in_a_row == 0
