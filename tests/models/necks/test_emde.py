"""The static sketch."""

import math

import pytest
import torch

from xmodal.models.necks import Emde

WIDTH, N, BITS = 6, 4, 3


def fitted(tokens, mask=None, **options):
    pooling = Emde(WIDTH, partitions=N, bits=BITS, **options)
    pooling.fit(tokens, mask)
    return pooling


def literal_regions(pooling, token):
    """The region of a token in each partition, bit by bit."""
    regions = []
    for n in range(N):
        region = 0
        for bit in range(BITS):
            hyperplane = BITS * n + bit
            place = sum(
                x * pooling.directions[d, hyperplane].item() for d, x in enumerate(token.tolist())
            )
            region += 2**bit * (place > pooling.thresholds[hyperplane].item())
        regions.append(region)
    return regions


def test_a_token_lies_in_one_region_of_each_partition():
    tokens = torch.randn(2, 9, WIDTH)
    pooling = fitted(tokens)
    found = pooling.assign(tokens)
    assert found.shape == (2, 9, N, 2**BITS)
    assert set(found.unique().tolist()) == {0, 1}
    for b in range(2):
        for token in range(9):
            assert found[b, token].argmax(-1).tolist() == literal_regions(pooling, tokens[b, token])
    assert (found.sum(-1) == 1).all()


def test_a_sketch_counts_real_tokens_and_adds():
    tokens, mask = torch.randn(3, 8, WIDTH), torch.rand(3, 8) < 0.7
    pooling = fitted(tokens)
    expected = torch.zeros(3, N, 2**BITS)
    for b, token in mask.nonzero().tolist():
        for n, region in enumerate(literal_regions(pooling, tokens[b, token])):
            expected[b, n, region] += 1
    assert pooling.sketch(tokens, mask).equal(expected)
    some = torch.rand(3, 8) < 0.5
    parts = pooling.sketch(tokens, mask & some) + pooling.sketch(tokens, mask & ~some)
    assert parts.equal(expected)
    norms = pooling(tokens, mask).view(3, N, -1).norm(dim=-1)
    torch.testing.assert_close(norms, torch.ones(3, N))


def test_a_hyperplane_lies_at_its_share_of_the_real_tokens():
    tokens, mask = 5 + torch.randn(40, 50, WIDTH).exp(), torch.rand(40, 50) < 0.5
    pooling = fitted(tokens.masked_fill(~mask[..., None], -1e4), mask)
    places = tokens[mask] @ pooling.directions
    share = (places <= pooling.thresholds).float().mean(0)
    torch.testing.assert_close(share, pooling.shares, atol=0.005, rtol=0)


def test_regions_follow_the_density_of_the_data():
    # Nearly all tokens lie in a lump far from the origin: fixed hyperplanes would not part them.
    tokens = 100 + 0.01 * torch.randn(1, 2000, WIDTH)
    assert (fitted(tokens).assign(tokens).sum((0, 1)) > 0).float().mean() > 0.5


def test_a_seed_gives_the_same_partitions_and_another_gives_others():
    tokens = torch.randn(2, 9, WIDTH)
    one, same, other = fitted(tokens), fitted(tokens), fitted(tokens, seed=1)
    assert one.sketch(tokens).equal(same.sketch(tokens))
    assert not one.directions.equal(other.directions)


def test_before_it_is_fitted_it_is_refused():
    with pytest.raises(RuntimeError, match='Emde is not fitted: call fit'):
        Emde(WIDTH)(torch.randn(2, 3, WIDTH))


def test_a_checkpoint_carries_the_fit():
    tokens = torch.randn(2, 9, WIDTH)
    pooling, other = fitted(tokens), Emde(WIDTH, partitions=N, bits=BITS, seed=7)
    assert not list(pooling.parameters())
    other.load_state_dict(pooling.state_dict())
    assert other(tokens).equal(pooling(tokens))


@pytest.mark.parametrize(
    'tokens', [torch.zeros(0, WIDTH), torch.full((3, WIDTH), math.nan)], ids=['none', 'nan']
)
def test_fitting_to_nothing_or_to_nan_is_a_clear_error(tokens):
    with pytest.raises(ValueError, match='Emde.fit got . real tokens'):
        fitted(tokens)


def test_one_token_is_enough():
    token = torch.randn(1, 1, WIDTH)
    assert fitted(token)(token).isfinite().all()
