"""The equations against literal float64 loops."""

import math

import pytest
import torch
from torch.autograd import gradcheck

from xmodal import functional as F

DELTA, TAU = 0.05, 1e4
FORMATS = [torch.float64, torch.float32]


def tolerance(dtype):
    return 1e-12 if dtype == torch.float64 else 1e-5


def random_tokens(batch, length, width, dtype=torch.float64, seed=0):
    return torch.randn(
        batch, length, width, dtype=dtype, generator=torch.Generator().manual_seed(seed)
    )


def random_similarity(*shape, dtype=torch.float64, seed=0):
    """Cosines of which about half are anchors."""
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.rand(*shape, dtype=torch.float64, generator=generator) - 1).to(dtype)


def padding(words, lengths):
    return torch.arange(words)[None] < torch.tensor(lengths)[:, None]


def literal_shrink(s, delta=DELTA, tau=TAU):
    return s if s >= delta else delta * math.exp(tau * (s - delta))


def literal_distance(s, delta=DELTA, tau=TAU):
    shrunk = literal_shrink(s, delta, tau)
    return 1 / shrunk if shrunk > 0 and 1 / shrunk <= 2 / delta else math.inf


def literal_path(distance, grid_size, mask, patch_window, token_window):
    """Eq. 7 by exhausting all anchors (i, j) of every pair (m, n)."""
    batch, patches, words, groups = distance.shape
    result = torch.full_like(distance, math.inf)
    for b in range(batch):
        for m in range(patches):
            for n in range(words):
                for g in range(groups):
                    paths = [
                        literal_step_patch(m, i, grid_size, patch_window)
                        + distance[b, i, j, g].item()
                        + literal_step_word(n, j, token_window)
                        for i in range(patches)
                        for j in range(words)
                        if mask[b, n] and mask[b, j]
                    ]
                    result[b, m, n, g] = min(paths, default=math.inf)
    return result


def literal_step_patch(m, i, grid_size, window):
    if m == 0 or i == 0:
        return 0 if m == i else math.inf
    (row, column), (other_row, other_column) = (divmod(k - 1, grid_size[1]) for k in (m, i))
    down, right = abs(row - other_row), abs(column - other_column)
    return math.hypot(down, right) if max(down, right) <= window // 2 else math.inf


def literal_step_word(n, j, window):
    if n == 0 or j == 0:
        return 0 if n == j else math.inf
    return abs(n - j) if abs(n - j) <= window // 2 else math.inf


# Eq. 3


@pytest.mark.parametrize('dtype', FORMATS)
@pytest.mark.parametrize(('patches', 'words', 'width', 'groups'), [(7, 3, 12, 4), (2, 5, 9, 1)])
def test_multi_group_similarity_is_the_cosine_of_each_group(patches, words, width, groups, dtype):
    image, text = random_tokens(2, patches, width, seed=1), random_tokens(2, words, width, seed=2)
    expected = torch.empty(2, patches, words, groups, dtype=torch.float64)
    run = width // groups
    for b in range(2):
        for m in range(patches):
            for n in range(words):
                for g in range(groups):
                    x, y = (t[g * run : (g + 1) * run] for t in (image[b, m], text[b, n]))
                    expected[b, m, n, g] = (x @ y) / (x.norm() * y.norm())
    found = F.multi_group_similarity(image.to(dtype), text.to(dtype), groups)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), expected, atol=tolerance(dtype), rtol=0)


def test_one_group_is_the_plain_cosine():
    image, text = random_tokens(2, 5, 6), random_tokens(2, 3, 6, seed=1)
    expected = torch.cosine_similarity(image[:, :, None], text[:, None], dim=-1)
    torch.testing.assert_close(F.multi_group_similarity(image, text, 1)[..., 0], expected)


def test_gradient_of_the_similarity_is_right():
    image = random_tokens(1, 3, 6).requires_grad_()
    text = random_tokens(1, 2, 6, seed=1).requires_grad_()
    assert gradcheck(lambda x, y: F.multi_group_similarity(x, y, 2), (image, text))


def test_a_token_of_zeros_has_similarity_zero_and_a_finite_gradient():
    image = torch.zeros(1, 2, 4, requires_grad=True)
    similarity = F.multi_group_similarity(image, torch.ones(1, 3, 4), 2)
    similarity.sum().backward()
    assert (similarity == 0).all()
    assert image.grad.isfinite().all()


# Eqs. 4 and 5

EDGES = [-1.0, 0.0, DELTA - 1e-2, DELTA - 1e-5, DELTA, DELTA + 1e-5, 0.2, 0.9, 1.0]


@pytest.mark.parametrize('dtype', FORMATS)
def test_soft_shrink_is_equation_4(dtype):
    similarity = torch.tensor(EDGES, dtype=dtype)
    expected = [literal_shrink(s) for s in similarity.double().tolist()]
    expected = torch.tensor(expected, dtype=torch.float64)
    found = F.soft_shrink(similarity).double()
    torch.testing.assert_close(found[:3], expected[:3], atol=1e-12, rtol=1e-4)
    torch.testing.assert_close(found[4:], expected[4:], atol=1e-7, rtol=1e-5)
    # τ = 1e4 turns the last digit of float32 into 4e-5 of Ŝ.
    torch.testing.assert_close(found[3], expected[3], atol=1e-12, rtol=1e-4)


def test_gradient_of_soft_shrink_is_right_on_both_sides_of_the_threshold():
    similarity = torch.tensor([-0.5, 0.0, 0.03, 0.06, 0.9], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda s: F.soft_shrink(s, tau=20.0), similarity)


@pytest.mark.parametrize('dtype', [*FORMATS, torch.bfloat16, torch.float16])
def test_soft_shrink_has_finite_gradients_far_above_the_threshold(dtype):
    similarity = torch.tensor(EDGES, dtype=dtype, requires_grad=True)
    F.soft_shrink(similarity).sum().backward()
    assert similarity.grad.isfinite().all()


def test_anchors_are_where_the_shrunk_similarity_reaches_delta():
    similarity = random_similarity(2, 4, 3, 2)
    found = F.anchor_mask(similarity)
    assert found.dtype == torch.bool
    expected = [literal_shrink(s) >= DELTA for s in similarity.flatten().tolist()]
    assert found.flatten().tolist() == expected


# Eq. 6


@pytest.mark.parametrize('dtype', FORMATS)
def test_anchor_distance_is_one_over_the_shrunk_similarity(dtype):
    similarity = torch.cat([torch.tensor(EDGES, dtype=dtype), random_similarity(50, dtype=dtype)])
    expected = [literal_distance(s) for s in similarity.double().tolist()]
    found = F.anchor_distance(similarity)
    assert found.dtype == dtype
    torch.testing.assert_close(
        found.double(), torch.tensor(expected, dtype=torch.float64), rtol=1e-4, atol=1e-5
    )


def test_a_distance_above_two_over_delta_is_infinite():
    gap = math.log(2) / TAU
    similarity = torch.tensor([DELTA - 0.99 * gap, DELTA - 1.01 * gap], dtype=torch.float64)
    found = F.anchor_distance(similarity)
    assert 1.9 / DELTA < found[0] < 2 / DELTA
    assert found[1] == math.inf


@pytest.mark.parametrize(
    ('dtype', 'gradient_below'),
    [(torch.float16, False)]  # whose largest number is below the slope of the band
    + [(dtype, below) for dtype in (*FORMATS, torch.bfloat16) for below in (False, True)],
)
def test_anchor_distance_has_finite_gradients_everywhere(dtype, gradient_below):
    similarity = torch.tensor(EDGES, dtype=dtype, requires_grad=True)
    distance = F.anchor_distance(similarity, gradient_below=gradient_below)
    distance.masked_fill(distance.isinf(), 0).sum().backward()
    assert similarity.grad.isfinite().all()


def test_gradient_of_the_distance_stops_below_delta():
    similarity = torch.tensor([DELTA - 1e-5, 0.5], dtype=torch.float64, requires_grad=True)
    F.anchor_distance(similarity).sum().backward()
    torch.testing.assert_close(similarity.grad, torch.tensor([0.0, -4.0], dtype=torch.float64))


def test_gradient_of_the_distance_below_delta_can_be_let_through():
    similarity = torch.tensor([DELTA - 1e-5, 0.5], dtype=torch.float64, requires_grad=True)
    distance = F.anchor_distance(similarity, gradient_below=True)
    distance.sum().backward()
    assert similarity.grad[0].item() == pytest.approx(-TAU * distance[0].item())


# Eq. 7

SHAPES = [
    # grid, words with [CLS], groups, patch window, token window
    ((3, 5), 6, 3, 3, 5),
    ((1, 4), 2, 1, 3, 5),
    ((4, 1), 7, 2, 3, 3),
    ((2, 3), 5, 2, 1, 1),
    ((3, 3), 9, 1, 5, 7),
    ((1, 1), 1, 2, 3, 5),
]


@pytest.mark.parametrize('dtype', FORMATS)
@pytest.mark.parametrize(('grid', 'words', 'groups', 'patch_window', 'token_window'), SHAPES)
def test_separated_minimum_is_the_exhaustive_one(
    grid, words, groups, patch_window, token_window, dtype
):
    patches = 1 + grid[0] * grid[1]
    similarity = random_similarity(2, patches, words, groups) - 0.3
    distance = F.anchor_distance(similarity)
    mask = padding(words, [words, max(1, words - 2)])
    expected = literal_path(distance, grid, mask, patch_window, token_window)
    found = F.relative_distance(distance.to(dtype), grid, mask, patch_window, token_window)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=0)


def test_without_a_mask_all_words_are_real():
    distance = F.anchor_distance(random_similarity(2, 7, 4, 2))
    everything = torch.ones(2, 4, dtype=torch.bool)
    assert F.relative_distance(distance, (2, 3)).equal(
        F.relative_distance(distance, (2, 3), everything)
    )


def test_padding_words_are_on_no_path():
    distance = F.anchor_distance(random_similarity(2, 7, 6, 2))
    mask = padding(6, [4, 5])
    noisy = torch.where(mask[:, None, :, None], distance, 1.0)
    found, expected = (F.relative_distance(d, (2, 3), mask) for d in (noisy, distance))
    assert found.equal(expected)
    assert found.masked_select(~mask[:, None, :, None]).isinf().all()


def test_without_any_anchor_no_pair_has_a_path_and_the_gradient_is_zero():
    similarity = torch.full((1, 7, 4, 2), -0.5, requires_grad=True)
    path = F.relative_distance(F.anchor_distance(similarity), (2, 3))
    assert path.isinf().all()
    F.place(path).sum().backward()
    assert (similarity.grad == 0).all()


def test_where_every_pair_is_an_anchor_no_path_is_longer_than_its_own_distance():
    similarity = random_similarity(1, 7, 5, 2).abs().clamp(min=DELTA)
    distance = F.anchor_distance(similarity)
    path = F.relative_distance(distance, (2, 3))
    assert (path <= distance).all()
    assert (path >= 1).all()


def test_an_only_anchor_reaches_its_neighbours_and_no_others():
    distance = torch.full((1, 1 + 15, 1 + 7, 1), math.inf)
    distance[0, 1 + 7, 4, 0] = 3.0  # the middle of a 3 × 5 grid, the fourth word
    path = F.relative_distance(distance, (3, 5))[0, :, :, 0]
    root = math.sqrt(2)
    grid = torch.tensor([[root, 1, root], [1, 0, 1], [root, 1, root]])
    expected = 3 + grid[..., None] + torch.tensor([2, 1, 0, 1, 2])
    reached = path[1:, 2:7].view(3, 5, 5)[:, 1:4]
    torch.testing.assert_close(reached, expected)
    assert path.isfinite().sum() == 9 * 5


def test_cls_is_a_neighbour_of_itself_alone():
    distance = torch.full((1, 7, 5, 1), math.inf)
    distance[0, 0, 0] = 2.0
    path = F.relative_distance(distance, (2, 3))
    assert path[0, 0, 0] == 2
    assert path.isfinite().sum() == 1


def test_flipping_the_grid_flips_the_paths():
    distance = F.anchor_distance(random_similarity(2, 1 + 12, 5, 2))

    def flip(x):
        grid = x[:, 1:].unflatten(1, (3, 4)).flip(2).flatten(1, 2)
        return torch.cat([x[:, :1], grid], 1)

    found = F.relative_distance(flip(distance), (3, 4))
    torch.testing.assert_close(found, flip(F.relative_distance(distance, (3, 4))))


def test_groups_do_not_mix():
    distance = F.anchor_distance(random_similarity(1, 7, 5, 3))
    path = F.relative_distance(distance, (2, 3))
    for group in range(3):
        alone = F.relative_distance(distance[..., group : group + 1], (2, 3))
        torch.testing.assert_close(path[..., group : group + 1], alone)


def test_gradient_of_the_path_goes_to_the_winning_anchor():
    distance = torch.full((1, 7, 5, 1), math.inf, dtype=torch.float64)
    distance[0, 2, 2, 0], distance[0, 5, 3, 0] = 4.0, 9.0  # too far apart to share a pair
    distance.requires_grad_()
    path = F.relative_distance(distance, (1, 6))
    torch.where(path.isfinite(), path, 0).sum().backward()
    won = (path - 9 >= 0) & path.isfinite()
    assert distance.grad[0, 5, 3, 0] == won.sum()
    assert distance.grad[0, 2, 2, 0] == (path.isfinite() & ~won).sum()
    assert distance.grad.count_nonzero() == 2


def test_gradient_of_the_path_is_right():
    distance = (1 + 3 * random_tokens(1, 7, 4, seed=3).abs())[..., None].requires_grad_()
    mask = padding(4, [3])

    def finite_path(d):
        return F.place(F.relative_distance(d, (2, 3), mask))

    assert gradcheck(finite_path, distance)


def test_gradients_from_tokens_to_paths_are_finite():
    image = random_tokens(2, 7, 12, torch.float32).requires_grad_()
    text = random_tokens(2, 5, 12, torch.float32, seed=1).requires_grad_()
    similarity = F.multi_group_similarity(image, text, 3)
    path = F.relative_distance(F.anchor_distance(similarity), (2, 3), padding(5, [5, 2]))
    F.place(path).square().sum().backward()
    assert image.grad.isfinite().all() and text.grad.isfinite().all()
    assert image.grad.count_nonzero()


def test_for_the_backward_pass_no_shifted_copies_are_kept():
    distance = F.anchor_distance(random_similarity(1, 1 + 64, 9, 4)).requires_grad_()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda x: (kept.append(x.numel()), x)[1], lambda x: x
    ):
        F.relative_distance(distance, (8, 8), padding(9, [7]))
    assert sum(kept) <= 3 * distance.numel()


# Eqs. 8-12


def paths(dtype=torch.float64, groups=3):
    mask = padding(5, [5, 3])
    distance = F.anchor_distance(random_similarity(2, 7, 5, groups) - 0.5)
    return F.relative_distance(distance.to(dtype), (2, 3), mask), mask


def test_unreached_pairs_are_zero_by_default():
    distance, _ = paths()
    placed = F.place(distance)
    assert distance.isinf().any() and distance.isfinite().any()
    assert placed.equal(torch.where(distance.isinf(), 0, distance))


def test_unreached_pairs_can_be_far():
    distance, _ = paths()
    placed = F.place(distance, 'far', 23.4)
    assert placed.equal(torch.where(distance.isinf(), 23.4, distance))


def test_unreached_pairs_can_have_a_vector_of_their_own():
    distance, _ = paths()
    placed = F.place(distance, 'learned')
    weight = random_tokens(1, 6, 4, seed=5)[0]
    expected = F.place(distance) @ weight[:3] + distance.isinf().double() @ weight[3:]
    assert placed.shape[-1] == 6
    torch.testing.assert_close(placed @ weight, expected)


@pytest.mark.parametrize('null', ['zero', 'far', 'learned'])
def test_an_unreached_pair_has_gradient_zero(null):
    distance = torch.tensor([2.0, math.inf]).view(1, 1, 2, 1).requires_grad_()
    F.place(distance, null, 23.4).sum().backward()
    assert distance.grad.flatten().tolist() == [1, 0]


@pytest.mark.parametrize('dtype', FORMATS)
def test_contextual_terms_are_the_means_of_the_materialised_embedding(dtype):
    distance, text_mask = paths()
    placed, weight = F.place(distance, 'far', 23.4), random_tokens(1, 3, 8, seed=5)[0]
    image_mask = padding(7, [7, 6])
    embedding = placed[..., None, :] @ weight  # (B, M, N, 1, D)
    image_sum, text_sum = torch.zeros(2, 7, 8).double(), torch.zeros(2, 5, 8).double()
    for b in range(2):
        for m in range(7):
            for n in range(5):
                image_sum[b, m] += embedding[b, m, n, 0] * text_mask[b, n] / text_mask[b].sum()
                text_sum[b, n] += embedding[b, m, n, 0] * image_mask[b, m] / image_mask[b].sum()
    found = F.contextual_terms(placed.to(dtype), weight.to(dtype), image_mask, text_mask)
    for term, expected in zip(found, (image_sum, text_sum), strict=True):
        assert term.dtype == dtype
        torch.testing.assert_close(term.double(), expected, atol=1e-4, rtol=tolerance(dtype))


def test_contextual_terms_without_masks_are_plain_means():
    placed, weight = F.place(paths()[0]), random_tokens(1, 3, 8, seed=5)[0]
    image, text = F.contextual_terms(placed, weight)
    torch.testing.assert_close(image, (placed @ weight).mean(2))
    torch.testing.assert_close(text, (placed @ weight).mean(1))


@pytest.mark.parametrize('dtype', FORMATS)
def test_value_term_is_the_weighted_sum_of_the_materialised_embedding(dtype):
    placed, weight = F.place(paths()[0]), random_tokens(1, 3, 8, seed=5)[0]
    attention = random_tokens(2, 4 * 7, 5, seed=6).view(2, 4, 7, 5).softmax(-1)
    embedding = (placed @ weight).unflatten(-1, (4, 2))  # (B, M, N, H, D / H)
    expected = torch.zeros(2, 7, 4, 2, dtype=torch.float64)
    for b in range(2):
        for h in range(4):
            for i in range(7):
                for j in range(5):
                    expected[b, i, h] += attention[b, h, i, j] * embedding[b, i, j, h]
    found = F.value_term(attention.to(dtype), placed.to(dtype), weight.to(dtype))
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), expected.flatten(2), atol=1e-4, rtol=1e-5)


def test_value_term_takes_the_text_as_the_queries():
    placed, weight = F.place(paths()[0]).transpose(1, 2), random_tokens(1, 3, 8, seed=5)[0]
    attention = random_tokens(2, 4 * 5, 7, seed=6).view(2, 4, 5, 7).softmax(-1)
    embedding = (placed @ weight).unflatten(-1, (4, 2))
    expected = torch.einsum('bhij,bijhd->bihd', attention, embedding).flatten(2)
    torch.testing.assert_close(F.value_term(attention, placed, weight), expected)


@pytest.mark.parametrize('dtype', FORMATS)
def test_bias_term_is_the_projected_embedding(dtype):
    placed, weight = F.place(paths()[0]), random_tokens(1, 3, 8, seed=5)[0]
    projection = random_tokens(1, 1, 8, seed=6)[0, 0]
    found = F.bias_term(placed.to(dtype), weight.to(dtype), projection.to(dtype))
    assert found.dtype == dtype
    expected = (placed[..., None, :] @ weight @ projection)[..., 0]
    torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=1e-5)


def test_gradients_of_the_terms_are_right():
    placed = F.place(paths()[0][:1]).requires_grad_()
    weight = random_tokens(1, 3, 4, seed=5)[0].requires_grad_()
    projection = random_tokens(1, 1, 4, seed=6)[0, 0].requires_grad_()
    attention = random_tokens(1, 2 * 7, 5, seed=6).view(1, 2, 7, 5).requires_grad_()
    mask = padding(5, [3])
    assert gradcheck(lambda p, w: F.contextual_terms(p, w, None, mask), (placed, weight))
    assert gradcheck(F.value_term, (attention, placed, weight))
    assert gradcheck(F.bias_term, (placed, weight, projection))


# Eqs. 1 and 2


@pytest.mark.parametrize('dtype', FORMATS)
@pytest.mark.parametrize('scale', [2.0, 10.0, 200.0])
def test_anchor_log_sum_exp_leaves_out_cls_and_padding(scale, dtype):
    image, text = random_tokens(2, 7, 6), random_tokens(2, 5, 6, seed=1)
    mask = padding(5, [5, 3])
    expected = []
    for b in range(2):
        cosines = [
            torch.cosine_similarity(image[b, m], text[b, n], dim=0).item()
            for m in range(1, 7)
            for n in range(1, 5)
            if mask[b, n]
        ]
        expected.append(math.log(math.fsum(math.exp(scale * c) for c in cosines)) / scale)
    found = F.anchor_log_sum_exp(image.to(dtype), text.to(dtype), scale, mask)
    assert found.dtype == dtype
    torch.testing.assert_close(found.tolist(), expected, atol=tolerance(dtype), rtol=0)


def test_gradient_of_anchor_log_sum_exp_is_right():
    image = random_tokens(1, 4, 3).requires_grad_()
    text = random_tokens(1, 4, 3, seed=1).requires_grad_()
    mask = padding(4, [3])
    assert gradcheck(lambda x, y: F.anchor_log_sum_exp(x, y, 2.0, mask), (image, text))


def test_a_text_of_cls_alone_counts_as_zero():
    image = random_tokens(2, 4, 3).requires_grad_()
    text = random_tokens(2, 4, 3, seed=1).requires_grad_()
    found = F.anchor_log_sum_exp(image, text, 2.0, padding(4, [1, 3]))
    found.sum().backward()
    assert found[0] == 0 and found[1] != 0
    for x in (image, text):
        assert (x.grad[0] == 0).all() and x.grad[1].isfinite().all()


@pytest.mark.parametrize('dtype', FORMATS)
def test_margin_contrast_is_equation_2(dtype):
    positive, negatives = random_similarity(6), random_similarity(6, 9, seed=1)
    positive[0], negatives[0] = 1.0, -1.0  # closes the hinge
    mask = random_similarity(6, 9, seed=2) > 0
    delta, scale = 0.05, 20.0
    expected = []
    for f, row, real in zip(positive.tolist(), negatives.tolist(), mask.tolist(), strict=True):
        total = math.fsum(math.exp(scale * z) for z, r in zip(row, real, strict=True) if r)
        expected.append(-min(0.0, f - delta - math.log(total) / scale))
    found = F.margin_contrast(positive.to(dtype), negatives.to(dtype), delta, scale, mask)
    assert found.dtype == dtype
    assert found[0] == 0
    torch.testing.assert_close(found.tolist(), expected, atol=tolerance(dtype), rtol=0)


def test_margin_contrast_without_a_mask_counts_all():
    positive, negatives = random_similarity(4), random_similarity(4, 5, seed=1)
    everything = torch.ones(4, 5, dtype=torch.bool)
    torch.testing.assert_close(
        F.margin_contrast(positive, negatives, 0.05, 2.0),
        F.margin_contrast(positive, negatives, 0.05, 2.0, everything),
    )


def test_gradient_of_an_open_hinge_is_right():
    positive = random_similarity(3).requires_grad_()
    negatives = random_similarity(3, 5, seed=1).requires_grad_()
    mask = torch.tensor([[True, False, True, True, False]] * 3)
    assert gradcheck(lambda p, n: F.margin_contrast(p, n, 0.05, 2.0, mask), (positive, negatives))


@pytest.mark.parametrize('count', [0, 3])
def test_a_sample_without_negatives_costs_nothing(count):
    positive = torch.zeros(2, requires_grad=True)
    negatives = torch.ones(2, count, requires_grad=True)
    found = F.margin_contrast(
        positive, negatives, 0.05, 2.0, torch.zeros(2, count, dtype=torch.bool)
    )
    found.sum().backward()
    assert found.tolist() == [0, 0]
    assert positive.grad.tolist() == [0, 0]
    assert (negatives.grad == 0).all()


# number formats


def every_function(image, text, weight, projection, attention):
    mask = padding(5, [5, 3])
    similarity = F.multi_group_similarity(image, text, 3)
    distance = F.relative_distance(F.anchor_distance(similarity), (2, 3), mask)
    placed = F.place(distance, 'far', 23.4)
    yield similarity
    yield F.soft_shrink(similarity)
    yield placed
    yield from F.contextual_terms(placed, weight, None, mask)
    yield F.value_term(attention, placed, weight)
    yield F.bias_term(placed, weight, projection)
    yield F.anchor_log_sum_exp(image, text, 10.0, mask)
    yield F.margin_contrast(image[:, 0, 0], text[:, :, 0], 0.05, 20.0, mask)


def inputs(dtype):
    return [
        random_tokens(2, 7, 12, dtype),
        random_tokens(2, 5, 12, dtype, seed=1),
        random_tokens(1, 3, 12, dtype, seed=2)[0],
        random_tokens(1, 1, 12, dtype, seed=3)[0, 0],
        random_tokens(2, 4 * 7, 5, dtype, seed=4).view(2, 4, 7, 5).softmax(-1),
    ]


@pytest.mark.parametrize('autocast', [torch.bfloat16, torch.float16])
def test_autocast_changes_nothing(autocast):
    expected = list(every_function(*inputs(torch.float32)))
    with torch.autocast('cpu', autocast):
        found = list(every_function(*inputs(torch.float32)))
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == torch.float32
        assert x.equal(y)


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_precision_inputs_are_computed_in_float32_with_finite_gradients(dtype):
    half = [x.requires_grad_() for x in inputs(dtype)]
    expected = list(every_function(*(x.detach().float() for x in half)))
    with torch.autocast('cpu', torch.bfloat16):
        found = list(every_function(*half))
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == torch.float32
        assert x.equal(y)
    sum(x.sum() for x in found).backward()
    assert all(x.grad.isfinite().all() for x in half)


def test_arguments_can_be_given_by_name():
    similarity = random_similarity(3)
    assert F.soft_shrink(similarity=similarity).equal(F.soft_shrink(similarity))


# T-EMDE, Sec. 3.2

NORMS = [(F.l2_normalize, 2), (F.l1_normalize, 1)]


@pytest.mark.parametrize(('normalized', 'order'), NORMS)
@pytest.mark.parametrize('dim', [-1, 0, 1])
def test_a_run_is_divided_by_its_own_norm(normalized, order, dim):
    x = random_tokens(3, 4, 5)
    found = normalized(x, dim).movedim(dim, -1)
    for run, expected in zip(found.flatten(0, 1), x.movedim(dim, -1).flatten(0, 1), strict=True):
        length = sum(abs(number) ** order for number in expected.tolist()) ** (1 / order)
        torch.testing.assert_close(run, expected / length)


@pytest.mark.parametrize(('normalized', 'order'), NORMS)
def test_gradients_of_the_norms_are_right(normalized, order):
    assert gradcheck(normalized, random_tokens(2, 3, 4).requires_grad_())


@pytest.mark.parametrize(('normalized', 'order'), NORMS)
@pytest.mark.parametrize('dtype', [torch.float64, torch.float32, torch.bfloat16])
def test_a_run_of_zeros_stays_zero_and_gets_no_gradient(normalized, order, dtype):
    x = random_tokens(2, 3, 4)
    x[0, 1] = 0
    x = x.to(dtype).requires_grad_()
    found = normalized(x)
    (found * random_tokens(2, 3, 4, seed=1)).sum().backward()
    assert (found[0, 1] == 0).all() and (x.grad[0, 1] == 0).all()
    assert found.isfinite().all() and x.grad.isfinite().all()
    assert x.grad[0, 0].any() and x.grad[1].any()


@pytest.mark.parametrize(('normalized', 'order'), NORMS)
def test_norms_of_half_precision_are_taken_in_float32(normalized, order):
    # Squares of these leave the range of float16 at either end.
    x = torch.tensor([[3e4, 4e4], [3e-5, 4e-5]], dtype=torch.float16)
    expected = x.double() / x.double().norm(order, dim=-1, keepdim=True)
    torch.testing.assert_close(normalized(x).double(), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize('spaces', [3, 1])
def test_distances_to_centroids_are_squared_euclidean(spaces):
    projected = random_tokens(5, 2 * spaces, 4).view(5, 2, spaces, 4)
    centroids = random_tokens(2, 3, 4, seed=1)
    found = F.centroid_distance(projected, centroids)
    assert found.shape == (5, 2, 3)
    for token in range(5):
        for n in range(2):
            for k in range(3):
                x = projected[token, n, k if spaces > 1 else 0]
                expected = sum((a - b) ** 2 for a, b in zip(x, centroids[n, k], strict=True))
                torch.testing.assert_close(found[token, n, k], expected)


def test_soft_assignments_are_a_softmax_of_the_negative_distance():
    distance = random_tokens(2, 3, 4).square()
    found = F.soft_assignment(distance, torch.tensor(0.7))
    for row, expected in zip(found.flatten(0, 1), distance.flatten(0, 1), strict=True):
        weights = [math.exp(-0.7 * d) for d in expected.tolist()]
        assert row.tolist() == pytest.approx([w / sum(weights) for w in weights])


def test_a_sketch_is_the_sum_over_real_tokens():
    assignment, mask = random_tokens(2, 4, 6).view(2, 4, 3, 2), padding(4, [3, 1])
    assignment[~mask] = math.nan
    found = F.sketch(assignment, mask)
    assert found[0].equal(assignment[0, 0] + assignment[0, 1] + assignment[0, 2])
    assert found[1].equal(assignment[1, 0])


# Eq. 7 with boxes


def literal_box_path(distance, boxes, image_mask, mask, neighbours, token_window):
    """Eq. 7 where places are boxes' centres, by exhausting all anchors (i, j)."""
    batch, regions, words, groups = distance.shape
    result = torch.full_like(distance, math.inf)
    for b in range(batch):
        centres = [((x1 + x2) / 2, (y1 + y2) / 2) for x1, y1, x2, y2 in boxes[b].tolist()]
        real = [i for i in range(regions) if image_mask[b, i]]
        for m in real:
            steps = {i: math.dist(centres[m], centres[i]) * math.sqrt(len(real)) for i in real}
            near = sorted(real, key=lambda i: (i != m, steps[i]))[:neighbours]
            for n in range(words):
                for g in range(groups):
                    paths = [
                        steps[i]
                        + distance[b, i, j, g].item()
                        + literal_step_word(n, j, token_window)
                        for i in near
                        for j in range(words)
                        if mask[b, n] and mask[b, j]
                    ]
                    result[b, m, n, g] = min(paths, default=math.inf)
    return result


@pytest.mark.parametrize('dtype', FORMATS)
@pytest.mark.parametrize(('regions', 'counts', 'neighbours'), [(12, [12, 10], 9), (5, [5, 3], 4)])
def test_relative_box_distance_is_equation_7_with_centres_for_patches(
    regions, counts, neighbours, dtype
):
    similarity = random_similarity(2, regions, 6, 2, seed=3)
    distance = torch.tensor([literal_distance(s) for s in similarity.flatten().tolist()])
    distance = distance.double().view_as(similarity)
    boxes = torch.rand(2, regions, 4, generator=torch.Generator().manual_seed(4)).double()
    image_mask, mask = padding(regions, counts), padding(6, [6, 4])
    expected = literal_box_path(distance, boxes, image_mask, mask, neighbours, 5)
    found = F.relative_box_distance(
        distance.to(dtype), boxes.to(dtype), image_mask, mask, neighbours, 5
    )
    assert found.isinf().equal(expected.isinf())
    assert expected.isfinite().sum() > 20
    # float32 holds boxes of float64 to 1e-7, and a step between them to a few of these.
    near = dict(atol=1e-6 if dtype == torch.float64 else 1e-4, rtol=0)
    torch.testing.assert_close(found.double(), expected, **near)


def test_boxes_on_a_grid_with_all_its_neighbours_have_the_distances_of_patches():
    distance = random_similarity(1, 9, 5, 1).abs().reciprocal()
    corners = torch.tensor(
        [(c / 3, r / 3, (c + 1) / 3, (r + 1) / 3) for r in range(3) for c in range(3)]
    )
    with_cls = torch.cat([torch.full((1, 1, 5, 1), math.inf), distance], 1)
    mask = padding(5, [5])
    expected = F.relative_distance(with_cls, (3, 3), mask, patch_window=5)[:, 1:]
    found = F.relative_box_distance(
        distance, corners[None].double(), torch.ones(1, 9, dtype=torch.bool), mask
    )
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


def test_only_the_winning_anchor_of_a_box_gets_a_gradient():
    distance = torch.tensor([[[[9.0], [2.0]], [[9.0], [5.0]]]], requires_grad=True)
    boxes = torch.tensor([[[0.0, 0.0, 0.2, 0.2], [0.1, 0.0, 0.3, 0.2]]])
    everything = torch.ones(1, 2, dtype=torch.bool)
    F.relative_box_distance(distance, boxes, everything, everything)[:, :, 1].sum().backward()
    assert distance.grad.flatten().tolist() == [0, 2, 0, 0]
