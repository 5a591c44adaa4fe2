"""Activations that are recomputed in the backward pass."""

import pytest
import torch
from torch import nn

from xmodal.engine.layers import recompute_activations, recompute_gelu


class FeedForward(nn.Module):
    """A feed-forward block, as :func:`recompute_gelu` expects it."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 16), nn.Linear(16, 4)

    def forward(self, tokens):
        return tokens + self.activate(self.fc1(tokens))

    def activate(self, hidden):
        return self.fc2(nn.functional.gelu(hidden))


def saved_sizes(model, tokens):
    """Sizes of what a forward pass stores for the backward pass."""
    sizes = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: sizes.append(x.numel()) or x, id_):
        output = model(tokens)
    return sizes, output


def id_(x):
    return x


@pytest.mark.parametrize('compiled', [False, True])
def test_a_recomputed_gelu_changes_neither_numbers_nor_names(compiled):
    torch.manual_seed(0)
    model, tokens = nn.Sequential(FeedForward(), FeedForward()), torch.randn(3, 4)
    model(tokens).square().sum().backward()
    stored = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    recompute_gelu(model)
    run = torch.compile(model, backend='eager') if compiled else model
    run(tokens).square().sum().backward()
    recomputed = {name: p.grad for name, p in model.named_parameters()}
    assert recomputed.keys() == stored.keys()
    for name, gradient in stored.items():
        assert recomputed[name].equal(gradient), name


def test_a_second_layer_with_dropout_draws_the_same_when_it_is_recomputed():
    torch.manual_seed(0)
    block, tokens = FeedForward(), torch.randn(3, 4)
    block.fc2 = nn.Sequential(nn.Dropout(0.5), block.fc2)  # as LoRA puts one before its weights
    gradients = []
    for recomputed in (False, True):
        if recomputed:
            recompute_gelu(block)
        torch.manual_seed(1)
        gradients.append(torch.autograd.grad(block(tokens).sum(), block.fc2[1].weight)[0])
    assert gradients[0].equal(gradients[1])


def test_a_recomputed_gelu_is_not_stored():
    model, tokens = FeedForward(), torch.randn(3, 4)
    before, _ = saved_sizes(model, tokens)
    recompute_gelu(model)
    after, _ = saved_sizes(model, tokens)
    hidden = 3 * 16
    # The second layer stores the output of GELU, GELU its input.
    assert before.count(hidden) == 2 and after.count(hidden) == 1


def test_of_a_recomputed_module_only_the_input_is_stored():
    model, tokens = nn.Sequential(FeedForward(), FeedForward()), torch.randn(3, 4)
    before, expected = saved_sizes(model, tokens)
    recompute_activations(model, ['FeedForward'])
    after, output = saved_sizes(model, tokens)
    assert before.count(3 * 16) == 4 and after.count(3 * 16) == 0
    assert output.equal(expected)


def test_a_model_without_feed_forward_blocks_stays_as_it_is():
    model = nn.Sequential(nn.Linear(2, 2), nn.GELU())
    recompute_gelu(model)
    assert 'activate' not in vars(model[1])
