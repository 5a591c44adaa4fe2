"""The static sketch."""

import math

import pytest
import torch

from xmodal.models.necks import EMDE

WIDTH, N, BITS = 6, 4, 3


def fitted(tokens, mask=None, **options):
    pooling = EMDE(WIDTH, partitions=N, bits=BITS, **options)
    pooling.fit(tokens, mask)
    return pooling


def literal_regions(pooling, token):
    """The region of a token in each partition, bit by bit."""
    regions = []
    for n in range(N):
        region = 0
        for bit in range(BITS):
            hyperplane = BITS * n + bit
            projection = sum(
                x * pooling.directions[d, hyperplane].item() for d, x in enumerate(token.tolist())
            )
            region += 2**bit * (projection > pooling.thresholds[hyperplane].item())
        regions.append(region)
    return regions


def test_a_token_lies_in_one_region_of_each_partition():
    tokens = torch.randn(2, 9, WIDTH)
    pooling = fitted(tokens)
    actual = pooling.assign(tokens)
    assert actual.shape == (2, 9, N, 2**BITS)
    assert set(actual.unique().tolist()) == {0, 1}
    for b in range(2):
        for token in range(9):
            assert actual[b, token].argmax(-1).tolist() == literal_regions(
                pooling, tokens[b, token]
            )
    assert (actual.sum(-1) == 1).all()


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
    projections = tokens[mask] @ pooling.directions
    share = (projections <= pooling.thresholds).float().mean(0)
    torch.testing.assert_close(share, pooling.shares, atol=0.005, rtol=0)


def test_regions_follow_the_density_of_the_data():
    # The tokens lie close together, far from the origin: fixed hyperplanes would not separate them.
    tokens = 100 + 0.01 * torch.randn(1, 2000, WIDTH)
    assert (fitted(tokens).assign(tokens).sum((0, 1)) > 0).float().mean() > 0.5


def test_equal_seeds_give_equal_partitions_and_another_seed_others():
    tokens = torch.randn(2, 9, WIDTH)
    pooling, equal_seed, other_seed = fitted(tokens), fitted(tokens), fitted(tokens, seed=1)
    assert pooling.sketch(tokens).equal(equal_seed.sketch(tokens))
    assert not pooling.directions.equal(other_seed.directions)


def literal_thresholds(pooling, tokens):
    """Midway between the two sorted tokens at the hyperplane's share."""
    thresholds = []
    for hyperplane, share in enumerate(pooling.shares.tolist()):
        projections = sorted(
            sum(x * pooling.directions[d, hyperplane].item() for d, x in enumerate(token.tolist()))
            for token in tokens
        )
        below = int(share * (len(projections) - 1))
        thresholds.append((projections[below] + projections[below + 1]) / 2)
    return thresholds


def test_the_real_tokens_of_the_first_training_batch_fix_the_hyperplanes():
    pooling = EMDE(WIDTH, partitions=N, bits=BITS)
    tokens, mask = torch.randn(3, 8, WIDTH) + 4, torch.rand(3, 8) < 0.7
    tokens[~mask] = -1e4
    pooling(tokens, mask)
    thresholds = pooling.thresholds.clone()
    assert thresholds.tolist() == pytest.approx(literal_thresholds(pooling, tokens[mask]), abs=1e-5)
    pooling(tokens + 1, mask)
    pooling.eval()(tokens + 1, mask)
    assert pooling.thresholds.equal(thresholds)


def fit_on_rank(rank, init, folder):
    torch.distributed.init_process_group('gloo', f'file://{init}', rank=rank, world_size=2)
    torch.manual_seed(rank)
    pooling, tokens = EMDE(WIDTH, partitions=N, bits=BITS), torch.randn(2, 9, WIDTH)
    pooling(tokens)
    torch.save((pooling.thresholds, tokens), f'{folder}/{rank}.pth')
    torch.distributed.destroy_process_group()


def test_all_ranks_use_the_hyperplanes_of_the_first(tmp_path):
    torch.multiprocessing.start_processes(
        fit_on_rank, (tmp_path / 'init', tmp_path), nprocs=2, start_method='fork'
    )
    (first, tokens), (second, others) = (torch.load(tmp_path / f'{rank}.pth') for rank in (0, 1))
    assert not others.equal(tokens)
    assert second.equal(first)
    expected = literal_thresholds(EMDE(WIDTH, partitions=N, bits=BITS), tokens.flatten(0, 1))
    assert first.tolist() == pytest.approx(expected, abs=1e-5)


def test_under_bfloat16_autocast_the_hyperplanes_do_not_change():
    tokens = torch.randn(3, 8, WIDTH)
    pooling, other = fitted(tokens), EMDE(WIDTH, partitions=N, bits=BITS)
    with torch.autocast('cpu', torch.bfloat16):
        actual = other(tokens)
    assert other.thresholds.equal(pooling.thresholds)
    assert actual.equal(pooling(tokens))


def test_evaluation_before_fitting_is_an_error():
    with pytest.raises(RuntimeError, match='EMDE is not fitted: train, call fit'):
        EMDE(WIDTH).eval()(torch.randn(2, 3, WIDTH))


def test_a_checkpoint_carries_the_fit():
    tokens = torch.randn(2, 9, WIDTH)
    pooling, other = fitted(tokens), EMDE(WIDTH, partitions=N, bits=BITS, seed=7)
    assert not list(pooling.parameters())
    other.load_state_dict(pooling.state_dict())
    assert other(tokens).equal(pooling(tokens))


@pytest.mark.parametrize(
    'tokens', [torch.zeros(0, WIDTH), torch.full((3, WIDTH), math.nan)], ids=['none', 'nan']
)
def test_fitting_to_nothing_or_to_nan_is_a_clear_error(tokens):
    with pytest.raises(ValueError, match='EMDE.fit got . real tokens'):
        fitted(tokens)


def test_one_token_is_enough():
    token = torch.randn(1, 1, WIDTH)
    assert fitted(token)(token).isfinite().all()
