"""Eq. 7 of ACE-RPE against literal float64 loops, on grids and with boxes."""

import math

import pytest
import torch
from literal_equations import (
    DELTA,
    FORMATS,
    literal_distance,
    literal_path,
    literal_step_word,
    padding,
    random_similarity,
    random_tokens,
)
from torch.autograd import gradcheck

from xmodal import functional as F

SHAPES = [
    # grid, words with [CLS], groups, patch window, token window
    ((3, 5), 6, 3, 3, 5),
    ((1, 4), 2, 1, 3, 5),
    ((4, 1), 7, 2, 3, 3),
    ((2, 3), 5, 2, 1, 1),
    ((3, 3), 9, 1, 5, 7),
    ((1, 1), 1, 2, 3, 5),
]


@pytest.mark.parametrize('with_anchors', [False, True])  # in floating point, or in integers
@pytest.mark.parametrize('dtype', FORMATS)
@pytest.mark.parametrize(('grid', 'words', 'groups', 'patch_window', 'token_window'), SHAPES)
def test_separated_minimum_is_the_exhaustive_one(
    grid, words, groups, patch_window, token_window, dtype, with_anchors
):
    patches = 1 + grid[0] * grid[1]
    similarity = random_similarity(2, patches, words, groups) - 0.3
    distance = F.anchor_distance(similarity)
    mask = padding(words, [words, max(1, words - 2)])
    expected = literal_path(distance, grid, mask, patch_window, token_window)
    distance = distance.to(dtype).requires_grad_(with_anchors)
    actual = F.relative_distance(distance, grid, mask, patch_window, token_window).detach()
    assert actual.dtype == dtype
    torch.testing.assert_close(actual.double(), expected, atol=1e-5, rtol=0)


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
    actual, expected = (F.relative_distance(d, (2, 3), mask) for d in (noisy, distance))
    assert actual.equal(expected)
    assert actual.masked_select(~mask[:, None, :, None]).isinf().all()


def test_without_any_anchor_no_pair_has_a_path_and_the_gradient_is_zero():
    similarity = torch.full((1, 7, 4, 2), -0.5, requires_grad=True)
    path = F.relative_distance(F.anchor_distance(similarity), (2, 3))
    assert path.isinf().all()
    F.fill_unreachable(path).sum().backward()
    assert (similarity.grad == 0).all()


def test_if_every_pair_is_an_anchor_no_path_is_longer_than_the_distance_of_its_pair():
    similarity = random_similarity(1, 7, 5, 2).abs().clamp(min=DELTA)
    distance = F.anchor_distance(similarity)
    path = F.relative_distance(distance, (2, 3))
    assert (path <= distance).all()
    assert (path >= 1).all()


def test_a_single_anchor_reaches_its_neighbours_and_no_others():
    distance = torch.full((1, 1 + 15, 1 + 7, 1), math.inf)
    distance[0, 1 + 7, 4, 0] = 3.0  # the middle of a 3 × 5 grid, the fourth word
    path = F.relative_distance(distance, (3, 5))[0, :, :, 0]
    root = math.sqrt(2)
    grid = torch.tensor([[root, 1, root], [1, 0, 1], [root, 1, root]])
    expected = 3 + grid[..., None] + torch.tensor([2, 1, 0, 1, 2])
    reached = path[1:, 2:7].view(3, 5, 5)[:, 1:4]
    torch.testing.assert_close(reached, expected)
    assert path.isfinite().sum() == 9 * 5


def test_the_only_neighbour_of_cls_is_itself():
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

    actual = F.relative_distance(flip(distance), (3, 4))
    torch.testing.assert_close(actual, flip(F.relative_distance(distance, (3, 4))))


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
        return F.fill_unreachable(F.relative_distance(d, (2, 3), mask))

    assert gradcheck(finite_path, distance)


def test_gradients_from_tokens_to_paths_are_finite():
    image = random_tokens(2, 7, 12, torch.float32).requires_grad_()
    text = random_tokens(2, 5, 12, torch.float32, seed=1).requires_grad_()
    similarity = F.multi_group_similarity(image, text, 3)
    path = F.relative_distance(F.anchor_distance(similarity), (2, 3), padding(5, [5, 2]))
    F.fill_unreachable(path).square().sum().backward()
    assert image.grad.isfinite().all() and text.grad.isfinite().all()
    assert image.grad.count_nonzero()


def test_no_shifted_copies_are_kept_for_the_backward_pass():
    distance = F.anchor_distance(random_similarity(1, 1 + 64, 9, 4)).requires_grad_()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda x: (kept.append(x.numel()), x)[1], lambda x: x
    ):
        F.relative_distance(distance, (8, 8), padding(9, [7]))
    assert sum(kept) <= 3 * distance.numel()


def literal_box_path(distance, boxes, image_mask, mask, neighbours, token_window):
    """Eq. 7 with the centres of boxes, by exhausting all anchors (i, j)."""
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


@pytest.mark.parametrize('with_anchors', [False, True])
@pytest.mark.parametrize('dtype', FORMATS)
@pytest.mark.parametrize(('regions', 'counts', 'neighbours'), [(12, [12, 10], 9), (5, [5, 3], 4)])
def test_relative_box_distance_is_equation_7_with_centres_for_patches(
    regions, counts, neighbours, dtype, with_anchors
):
    similarity = random_similarity(2, regions, 6, 2, seed=3)
    distance = torch.tensor([literal_distance(s) for s in similarity.flatten().tolist()])
    distance = distance.double().view_as(similarity)
    boxes = torch.rand(2, regions, 4, generator=torch.Generator().manual_seed(4)).double()
    image_mask, mask = padding(regions, counts), padding(6, [6, 4])
    expected = literal_box_path(distance, boxes, image_mask, mask, neighbours, 5)
    distance = distance.to(dtype).requires_grad_(with_anchors)
    actual = F.relative_box_distance(
        distance, boxes.to(dtype), image_mask, mask, neighbours, 5
    ).detach()
    assert actual.isinf().equal(expected.isinf())
    assert expected.isfinite().sum() > 20
    # float32 holds boxes of float64 to 1e-7, and a step between them to a few of these.
    near = dict(atol=1e-6 if dtype == torch.float64 else 1e-4, rtol=0)
    torch.testing.assert_close(actual.double(), expected, **near)


def test_boxes_on_a_grid_with_all_its_neighbours_have_the_distances_of_patches():
    distance = random_similarity(1, 9, 5, 1).abs().reciprocal()
    corners = torch.tensor(
        [(c / 3, r / 3, (c + 1) / 3, (r + 1) / 3) for r in range(3) for c in range(3)]
    )
    with_cls = torch.cat([torch.full((1, 1, 5, 1), math.inf), distance], 1)
    mask = padding(5, [5])
    expected = F.relative_distance(with_cls, (3, 3), mask, patch_window=5)[:, 1:]
    actual = F.relative_box_distance(
        distance, corners[None].double(), torch.ones(1, 9, dtype=torch.bool), mask
    )
    torch.testing.assert_close(actual, expected, atol=1e-6, rtol=0)


def test_only_the_winning_anchor_of_a_box_gets_a_gradient():
    distance = torch.tensor([[[[9.0], [2.0]], [[9.0], [5.0]]]], requires_grad=True)
    boxes = torch.tensor([[[0.0, 0.0, 0.2, 0.2], [0.1, 0.0, 0.3, 0.2]]])
    everything = torch.ones(1, 2, dtype=torch.bool)
    F.relative_box_distance(distance, boxes, everything, everything)[:, :, 1].sum().backward()
    assert distance.grad.flatten().tolist() == [0, 2, 0, 0]
