"""T-EMDE against its Listing 1."""

import pytest
import torch
from torch import nn

from xmodal.models.necks import TEMDE
from xmodal.registry import MODELS

WIDTH, N, K, D = 12, 3, 4, 5


class Coder(nn.Module):
    """Lines 8-25 of Listing 1; mended: super().__init__() is called."""

    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(WIDTH, D * N * K)
        self.bn1 = nn.BatchNorm1d(D * N * K)
        self.centroids = nn.Parameter(torch.randn(D * N * K))
        self.temp = nn.Parameter(torch.ones(1))

    def forward(self, x):
        x = self.l1(x)
        x = self.bn1(x)
        dists = (x - self.centroids) ** 2
        dists = dists.view(-1, N * K, D).sum(-1).view(-1, N, K)
        soft_assignments = torch.softmax(-dists * self.temp, -1)
        soft_assignments = soft_assignments.view(-1, N * K)
        return soft_assignments


class ListedTEMDE(nn.Module):
    """Lines 27-38 of Listing 1; mended: super().__init__() is called, forward has self."""

    def __init__(self):
        super().__init__()
        self.coder = Coder()

    def forward(self, token_embeddings):
        encoded = self.coder(token_embeddings)
        summed = torch.sum(encoded, 0).view(-1, N, K)
        normalized = summed / (summed.pow(2).sum(-1, keepdim=True).sqrt() + 1e-8)
        return normalized.view(-1, N * K)


def make(**options):
    sizes = dict(partitions=N, centroids=K, inner_dims=D)
    pooling = MODELS.build(dict(type='TEMDE', embed_dims=WIDTH, **sizes, **options))
    with torch.no_grad():
        for parameter in pooling.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        pooling.bn1.running_mean.normal_()
        pooling.bn1.running_var.uniform_(0.5, 2)
    return pooling


def make_pair(**options):
    """A pooling, and the listing with its weights."""
    listed, pooling = ListedTEMDE(), make(**options)
    listed.coder.load_state_dict(pooling.state_dict())
    return pooling, listed


@pytest.fixture
def sets():
    """Four sets of 1 to 7 tokens, and which tokens are real, not always the first."""
    mask = torch.rand(4, 7) < 0.6
    mask[0], mask[1] = True, torch.arange(7) == 3
    mask[2:, :3] = True
    return torch.randn(4, 7, WIDTH), mask


@pytest.mark.parametrize('mode', ['train', 'eval'])
def test_one_item_equals_listing_1(mode):
    pooling, listed = (model.train(mode == 'train') for model in make_pair())
    tokens = torch.randn(6, WIDTH)
    torch.testing.assert_close(pooling(tokens[None]), listed(tokens), atol=1e-5, rtol=1e-5)
    for name, expected in listed.coder.state_dict().items():
        torch.testing.assert_close(pooling.state_dict()[name], expected)


@torch.no_grad()
def test_items_of_different_lengths_equal_the_listing_item_by_item(sets):
    pooling, listed = (model.eval() for model in make_pair())
    expected = torch.cat([listed(x[real]) for x, real in zip(*sets, strict=True)])
    torch.testing.assert_close(pooling(*sets), expected, atol=1e-5, rtol=1e-5)


def test_in_training_the_statistics_are_of_all_real_tokens_of_the_batch(sets):
    pooling, listed = make_pair()
    embeddings, mask = sets
    encoded = listed.coder(embeddings[mask]).view(-1, N, K)
    parts = encoded.split(mask.sum(1).tolist())
    expected = torch.stack([part.sum(0) for part in parts])
    torch.testing.assert_close(pooling.sketch(*sets), expected, atol=1e-5, rtol=1e-5)
    for name, buffer in listed.coder.bn1.named_buffers():
        torch.testing.assert_close(pooling.bn1.get_buffer(name), buffer)


def test_per_item_statistics_are_those_of_calling_the_listing_item_by_item(sets):
    pooling, listed = make_pair(bn_scope='per_item')
    embeddings, mask = sets
    mask[1] = torch.arange(7) < 2  # the listing's batch norm refuses an item of one token
    actual = pooling(embeddings, mask)
    expected = torch.cat([listed(x[real]) for x, real in zip(embeddings, mask, strict=True)])
    torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-4)
    for name, buffer in listed.coder.bn1.named_buffers():
        torch.testing.assert_close(pooling.bn1.get_buffer(name), buffer)
    for loss in (actual, expected):
        (loss * torch.arange(N * K)).sum().backward()
    for name, parameter in listed.coder.named_parameters():
        actual = pooling.get_parameter(name).grad
        torch.testing.assert_close(actual, parameter.grad, atol=1e-3, rtol=1e-3)


def test_per_item_statistics_accept_items_of_one_token_and_of_none():
    pooling = make(bn_scope='per_item')
    mask = torch.tensor([[True, False, False], [False] * 3, [True] * 3])
    actual = pooling(torch.randn(3, 3, WIDTH), mask)
    actual.sum().backward()
    assert actual.isfinite().all() and (actual[1] == 0).all()
    assert all(buffer.isfinite().all() for buffer in pooling.buffers())
    assert all(parameter.grad.isfinite().all() for parameter in pooling.parameters())
    assert pooling.bn1.num_batches_tracked == 2


@torch.no_grad()
def test_assignments_of_a_token_sum_to_1_in_every_partition(sets):
    assigned = make().assign(*sets)
    assert assigned.shape == (4, 7, N, K)
    torch.testing.assert_close(assigned.sum(-1), sets[1][..., None].expand(-1, -1, N).float())


@torch.no_grad()
def test_every_partition_has_norm_1(sets):
    pooling = make()
    actual = pooling(*sets)
    assert actual.shape == (4, pooling.out_dims)
    torch.testing.assert_close(actual.view(4, N, K).norm(dim=-1), torch.ones(4, N))


@torch.no_grad()
@pytest.mark.parametrize('bn_scope', ['batch', 'per_item'])
def test_the_order_of_tokens_does_not_matter(sets, bn_scope):
    embeddings, mask = sets
    pooling, order = make(bn_scope=bn_scope), torch.randperm(7)
    actual = pooling(embeddings[:, order], mask[:, order])
    torch.testing.assert_close(actual, pooling(embeddings, mask), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_the_sketch_of_a_union_is_the_sum_of_the_sketches(sets):
    pooling = make().eval()
    embeddings, mask = sets
    some = torch.rand(4, 7) < 0.5
    parts = pooling.sketch(embeddings, mask & some) + pooling.sketch(embeddings, mask & ~some)
    torch.testing.assert_close(parts, pooling.sketch(embeddings, mask))
    torch.testing.assert_close(pooling.normalize(parts), pooling(embeddings, mask))


@pytest.mark.parametrize('bn_scope', ['batch', 'per_item'])
@pytest.mark.parametrize('mode', ['train', 'eval'])
def test_the_content_of_padding_changes_nothing(sets, bn_scope, mode):
    embeddings, mask = sets
    results = []
    pooling = make(bn_scope=bn_scope).train(mode == 'train')
    state = {name: value.clone() for name, value in pooling.state_dict().items()}
    for filling in (0.0, 1e4, float('nan')):
        pooling.load_state_dict(state)
        pooling.zero_grad()
        tokens = embeddings.masked_fill(~mask[..., None], filling).requires_grad_()
        pooled = pooling(tokens, mask)
        (pooled * torch.arange(N * K)).sum().backward()
        assert (tokens.grad[~mask] == 0).all() and tokens.grad[mask].any(-1).float().mean() > 0.5
        gradients = [parameter.grad.clone() for parameter in pooling.parameters()]
        buffers = [buffer.clone() for buffer in pooling.buffers()]
        results.append([pooled.detach(), *gradients, *buffers])
    for other in results[1:]:
        assert all(a.equal(b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize('bn_scope', ['batch', 'per_item'])
def test_no_mask_means_that_all_tokens_are_real(sets, bn_scope):
    pooling, (embeddings, mask) = make(bn_scope=bn_scope), sets
    expected = pooling(embeddings, torch.ones_like(mask))
    torch.testing.assert_close(pooling(embeddings), expected, atol=1e-5, rtol=1e-5)


def test_longer_padding_changes_nothing(sets):
    embeddings, mask = sets
    pooling = make().eval()
    longer = torch.cat([embeddings, torch.randn(4, 5, WIDTH)], 1)
    longer_mask = torch.cat([mask, torch.zeros(4, 5, dtype=torch.bool)], 1)
    torch.testing.assert_close(pooling(longer, longer_mask), pooling(embeddings, mask))


def test_gradients_reach_centroids_temperature_projection_and_tokens(sets):
    pooling, tokens = make(), sets[0].requires_grad_()
    (pooling(tokens, sets[1]) * torch.arange(N * K)).sum().backward()
    for name in ('centroids', 'temp', 'l1.weight', 'bn1.weight'):
        gradient = pooling.get_parameter(name).grad
        assert gradient.isfinite().all() and gradient.count_nonzero() == gradient.numel(), name
    assert tokens.grad[sets[1]].any()


def test_zero_tokens_and_empty_sets_give_finite_values_and_gradients():
    tokens = torch.randn(3, 4, WIDTH)
    tokens[0, 1:], tokens[1] = 0, 0
    tokens.requires_grad_()
    mask = torch.tensor([[True] * 4, [True] * 4, [False] * 4])
    pooling = make()
    actual = pooling(tokens, mask)
    (actual * torch.arange(N * K)).sum().backward()
    assert actual.isfinite().all() and (actual[2] == 0).all()
    assert tokens.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in pooling.parameters())


@torch.no_grad()
def test_the_shift_of_the_batch_norm_is_redundant_with_the_centroids(sets):
    pooling, other = make().eval(), make().eval()
    other.load_state_dict(pooling.state_dict())
    other.centroids -= other.bn1.bias
    other.bn1.bias.zero_()
    torch.testing.assert_close(other(*sets), pooling(*sets), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize('bn_scope', ['batch', 'per_item'])
def test_bfloat16_autocast_stays_near_float32(sets, bn_scope):
    pooling, other = make(bn_scope=bn_scope), make(bn_scope=bn_scope)
    other.load_state_dict(pooling.state_dict())
    expected = pooling(*sets)
    with torch.autocast('cpu', torch.bfloat16):
        actual = other(*sets)
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual, expected, atol=0.05, rtol=0.05)
    torch.testing.assert_close(other.bn1.running_var, pooling.bn1.running_var, atol=0, rtol=0.01)


def test_an_unknown_choice_is_a_clear_error():
    with pytest.raises(ValueError, match="TEMDE.bn_scope='all', expected one of"):
        TEMDE(WIDTH, bn_scope='all')
