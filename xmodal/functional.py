"""The equations of the papers as pure tensor functions, one function an equation.

ACE-RPE: "An Anchor-based Relative Position Embedding Method for Cross-Modal Tasks" (Wang et al.).
T-EMDE: "Sketching-based global similarity for cross-modal retrieval" (Rychalska et al.).

Letters: B batch, M patches, N words, D width, G groups, H heads. In ACE-RPE index 0 of every token
axis is [CLS], so that an image has 1 + M tokens and a text 1 + N. In T-EMDE L counts the tokens of
a set, N the partitions, K the centroids of each and D the width of the space they live in.
Everything is computed in float32 (or float64, where that comes in) whatever autocast says:
distances reach 1 / 0.
"""

import functools
import math
from collections.abc import Callable, Iterator
from itertools import product

import torch
from torch import Tensor
from torch.nn.functional import normalize, pad

FAR = 2**15


def _full_precision(function: Callable) -> Callable:
    """Runs a function outside autocast, with half-precision tensors widened to float32."""

    def widen(value: object) -> object:
        if isinstance(value, Tensor) and value.dtype in (torch.bfloat16, torch.float16):
            return value.float()
        return value

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        tensor = next(value for value in (*args, *kwargs.values()) if isinstance(value, Tensor))
        with torch.autocast(tensor.device.type, enabled=False):
            return function(
                *map(widen, args), **{key: widen(value) for key, value in kwargs.items()}
            )

    return wrapped


@_full_precision
def multi_group_similarity(image_tokens: Tensor, text_tokens: Tensor, groups: int) -> Tensor:
    """S_G (Eq. 3): cosine similarity of every patch and word, group by group.

    Args:
        image_tokens: (B, 1 + M, D).
        text_tokens: (B, 1 + N, D).
        groups: G; D is split into G runs of D / G.

    Returns:
        (B, 1 + M, 1 + N, G).
    """
    image, text = (
        normalize(tokens.unflatten(-1, (groups, -1)).transpose(1, 2), dim=-1)
        for tokens in (image_tokens, text_tokens)
    )
    return (image @ text.mT).permute(0, 2, 3, 1).contiguous()


@_full_precision
def soft_shrink(similarity: Tensor, delta: float = 0.05, tau: float = 1e4) -> Tensor:
    """Ŝ_G (Eq. 4): similarities below δ vanish steeply.

    The exponent is clamped at 0 so that the branch not taken can't overflow, whose gradient would
    be NaN.
    """
    shrunk = delta * (tau * (similarity - delta)).clamp(max=0).exp()
    return torch.where(similarity >= delta, similarity, shrunk)


def anchor_mask(similarity: Tensor, delta: float = 0.05) -> Tensor:
    """A_G (Eq. 5), pair by pair: where Ŝ_G ≥ δ, which is where S_G ≥ δ; bool."""
    return similarity >= delta


@_full_precision
def anchor_distance(
    similarity: Tensor, delta: float = 0.05, tau: float = 1e4, gradient_below: bool = False
) -> Tensor:
    """D_G = 1 / Ŝ_G (Eqs. 4 and 6).

    A distance above 2 / δ is +inf: nothing is anchored there. In the thin band between, of width
    ln 2 / τ, the slope reaches 2 τ / δ and would drown every other gradient.

    Args:
        similarity: S_G, any shape.
        delta: δ.
        tau: τ.
        gradient_below: let gradients through in the band below δ.
    """
    exponent = tau * (delta - (similarity if gradient_below else similarity.detach()))
    excess = exponent.clamp(0, math.log(2)).expm1() / delta
    excess = excess.masked_fill(exponent > math.log(2), math.inf)
    return 1 / similarity.clamp(min=delta) + excess


@_full_precision
def relative_distance(
    distance: Tensor,
    grid_size: tuple[int, int],
    attention_mask: Tensor | None = None,
    patch_window: int = 3,
    token_window: int = 5,
) -> Tensor:
    """P_ace (Eq. 7): the shortest path of every patch and word through an anchor nearby.

    min over i, j of D_p2p(m, i) + D_G(i, j) + D_t2t(j, n), with D_p2p Euclidean, in patches, and
    D_t2t = |j − n|. The minimum separates: first over the words j, then over the patches i. [CLS]
    has no place: it is a neighbour of itself alone, at distance 0.

    Only the winning anchor of each pair is kept for the backward pass.

    Args:
        distance: D_G, (B, 1 + M, 1 + N, G); from 2¹⁵ on it counts as +inf.
        grid_size: rows and columns of the image, their product is M.
        attention_mask: True for real words, (B, 1 + N) bool; padding is on no path.
        patch_window: side of the square of patches searched (B_p = 9 is 3 × 3).
        token_window: B_t, number of words searched.

    Returns:
        (B, 1 + M, 1 + N, G), +inf where there is no path and for padding words.
    """
    padding = None if attention_mask is None else ~attention_mask[:, None, :, None]
    walk = functools.partial(_walk_grid, grid_size=grid_size, window=patch_window)
    return _relative_distance(distance, padding, token_window, walk)


@_full_precision
def relative_box_distance(
    distance: Tensor,
    boxes: Tensor,
    image_mask: Tensor,
    attention_mask: Tensor,
    neighbours: int = 9,
    token_window: int = 5,
) -> Tensor:
    """P_ace (Eq. 7) where boxes stand for patches, and there is no [CLS] among them.

    D_p2p is Euclidean between the boxes' centres, in patches: R boxes are taken for R patches of an
    image made square, each 1 / √R of its side. The patches searched are the nearest boxes.

    Args:
        distance: D_G, (B, R, 1 + N, G); from 2¹⁵ on it counts as +inf.
        boxes: x1, y1, x2, y2 as shares of the image, (B, R, 4).
        image_mask: True for real boxes, (B, R) bool; padding is on no path.
        attention_mask: True for real words, (B, 1 + N) bool; padding is on no path.
        neighbours: B_p, number of boxes searched, the box itself among them.
        token_window: B_t, number of words searched.

    Returns:
        (B, R, 1 + N, G), +inf where there is no path, for padding words and padding boxes.
    """
    padding = ~(image_mask[:, :, None] & attention_mask[:, None])[..., None]
    near, steps = _nearest_boxes(boxes, image_mask, neighbours)
    walk = functools.partial(_walk_boxes, near=near, steps=steps)
    return _relative_distance(distance, padding, token_window, walk)


def _nearest_boxes(boxes: Tensor, mask: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The nearest boxes of each box, itself first, and how far they are, both (B, R, K).

    Where an image has fewer than K boxes, the box itself fills up the rest.
    """
    centres = (boxes[..., :2] + boxes[..., 2:]) / 2
    distance = (centres[:, :, None] - centres[:, None]).square().sum(-1).sqrt()
    distance = distance * mask.sum(1).sqrt()[:, None, None]
    itself = torch.eye(boxes.shape[1], dtype=torch.bool, device=boxes.device)
    ranked = distance.masked_fill(~mask[:, None], math.inf).masked_fill(itself, -1)
    ranked, near = (x[..., :count] for x in ranked.sort(dim=-1, stable=True))
    missing = ranked.isinf()
    own = torch.arange(boxes.shape[1], device=boxes.device)[:, None]
    return torch.where(missing, own, near), ranked.masked_fill(missing, 0).clamp(min=0)


def _relative_distance(
    distance: Tensor, padding: Tensor | None, token_window: int, walk: Callable
) -> Tensor:
    """Eq. 7, given how to ``walk`` from patch to patch; ``padding``: pairs that are on no path."""
    with torch.no_grad():
        ways = distance if padding is None else distance.masked_fill(padding, math.inf)
        length, anchor = _shortest_path(ways, token_window, walk)
    reached = distance.flatten(1, 2).gather(1, anchor.flatten(1, 2)).view_as(anchor)
    with torch.no_grad():
        steps = (length - reached).masked_fill_(length >= FAR, math.inf)
        if padding is not None:
            steps.masked_fill_(padding, math.inf)
    return reached + steps


def _shortest_path(distance: Tensor, token_window: int, walk: Callable) -> tuple[Tensor, Tensor]:
    """The length of each pair's shortest path, and the flat index of its anchor (i, j).

    A path is one integer: its length in fixed point and, in the lowest bits, the index of its
    anchor. So a step adds to the length alone, and a minimum takes the anchor along.
    """
    patches, words = distance.shape[1:3]
    index_bits = (patches * words).bit_length()
    fraction_bits = 47 - index_bits  # 2 · FAR, the fraction and the index make 63 bits
    index = torch.arange(patches * words, device=distance.device).view(patches, words, 1)
    paths = (distance.clamp(max=FAR) * 2**fraction_bits).long()
    paths = paths.bitwise_left_shift_(index_bits).add_(index)

    def fixed_point(length: float | Tensor) -> int | Tensor:
        if isinstance(length, Tensor):
            return (length.double() * 2**fraction_bits).round().long() << index_bits
        return round(length * 2**fraction_bits) << index_bits

    reach, best = token_window // 2, paths[:, :, 1:]
    around = pad(best, (0, 0, reach, reach), value=fixed_point(FAR))
    for step in range(1, reach + 1):
        sides = (around.narrow(2, reach + side, words - 1) for side in (-step, step))
        _shorten(best, sides, fixed_point(step))

    walk(paths, fixed_point)
    length = (paths >> index_bits).to(distance.dtype) * 2.0**-fraction_bits
    return length, paths & (2**index_bits - 1)


def _walk_grid(
    paths: Tensor, fixed_point: Callable, grid_size: tuple[int, int], window: int
) -> None:
    """Shortens paths, in place, by a step to a patch of the square around each."""
    reach, best = window // 2, paths[:, 1:].unflatten(1, grid_size)
    around = pad(best, (0, 0, 0, 0, reach, reach, reach, reach), value=fixed_point(FAR))
    for down, right in product(range(reach + 1), repeat=2):
        if down or right:
            sides = (
                around.narrow(1, reach + row, grid_size[0]).narrow(2, reach + column, grid_size[1])
                for row, column in product({-down, down}, {-right, right})
            )
            _shorten(best, sides, fixed_point(math.hypot(down, right)))


def _walk_boxes(paths: Tensor, fixed_point: Callable, near: Tensor, steps: Tensor) -> None:
    """Shortens paths, in place, by a step to one of the boxes near each."""
    before = paths.clone()
    for index, step in zip(near.unbind(2), fixed_point(steps).unbind(2), strict=True):
        there = before.gather(1, index[..., None, None].expand_as(before))
        torch.minimum(paths, there.add_(step[..., None, None]), out=paths)


def _shorten(paths: Tensor, sides: Iterator[Tensor], step: int) -> None:
    """Takes over, in place, the paths that get shorter by a step to one of the sides."""
    torch.minimum(paths, functools.reduce(torch.minimum, sides).add_(step), out=paths)


@_full_precision
def place(distance: Tensor, null: str = 'zero', far: float = math.inf) -> Tensor:
    """P with a finite value for pairs that no anchor reaches, ready for Eq. 8.

    Args:
        distance: P, (B, 1 + M, 1 + N, G), +inf where masked.
        null: 'zero': no embedding; 'far': the value ``far``; 'learned': zero, and the mask itself
            as G more channels, so that the lower half of a (2G, D) weight holds the null vectors.
        far: for 'far'.
    """
    masked = distance.isinf()
    placed = distance.masked_fill(masked, far if null == 'far' else 0.0)
    return torch.cat([placed, masked.to(placed.dtype)], -1) if null == 'learned' else placed


@_full_precision
def contextual_means(
    distance: Tensor, image_mask: Tensor | None = None, text_mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """E_j P_ij and E_i P_ij (Eq. 10 before W), over the real tokens of the other modality.

    Args:
        distance: P, finite, (B, 1 + M, 1 + N, G).
        image_mask: (B, 1 + M) bool, None for all.
        text_mask: (B, 1 + N) bool, None for all.

    Returns:
        (B, 1 + M, G) for the patches and (B, 1 + N, G) for the words.
    """
    return _masked_mean(distance, text_mask, 2), _masked_mean(distance, image_mask, 1)


def _masked_mean(distance: Tensor, mask: Tensor | None, axis: int) -> Tensor:
    if mask is None:
        return distance.mean(axis)
    mask = mask[:, None, :, None] if axis == 2 else mask[:, :, None, None]
    return torch.where(mask, distance, 0).sum(axis) / mask.sum(axis).clamp(min=1)


@_full_precision
def contextual_terms(
    distance: Tensor,
    weight: Tensor,
    image_mask: Tensor | None = None,
    text_mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """What Eq. 10 adds to patches, (B, 1 + M, D), and to words, (B, 1 + N, D); W: (G, D)."""
    image_mean, text_mean = contextual_means(distance, image_mask, text_mask)
    return image_mean @ weight, text_mean @ weight


@_full_precision
def bias_term(distance: Tensor, weight: Tensor, projection: Tensor) -> Tensor:
    """E_ace W_E (Eq. 9), (B, 1 + M, 1 + N), as P (W W_E); W: (G, D), W_E: (D,)."""
    return distance @ (weight @ projection)


@_full_precision
def value_term(attention: Tensor, distance: Tensor, weight: Tensor) -> Tensor:
    """Σ_j a_ij E_ace(i, j) (Eq. 12), E_ace split over the heads as values are.

    Args:
        attention: a, (B, H, Lq, Lk).
        distance: P from the side of the queries, (B, Lq, Lk, G).
        weight: W, (G, D).

    Returns:
        (B, Lq, D).
    """
    located = attention.transpose(1, 2) @ distance  # (B, Lq, H, G)
    weight = weight.unflatten(1, (attention.shape[1], -1)).transpose(0, 1)  # (H, G, D / H)
    return (located.transpose(1, 2) @ weight).transpose(1, 2).flatten(2)


@_full_precision
def anchor_log_sum_exp(
    image_tokens: Tensor, text_tokens: Tensor, scale: float, attention_mask: Tensor | None = None
) -> Tensor:
    """(1 / λ) log Σ_mn exp(λ f(x_m, y_n)) (Eq. 1), without [CLS] and padding.

    Args:
        image_tokens: (B, 1 + M, D).
        text_tokens: (B, 1 + N, D).
        scale: λ.
        attention_mask: True for real words, (B, 1 + N) bool; a text of [CLS] alone gives 0.

    Returns:
        (B,).
    """
    image, text = normalize(image_tokens[:, 1:], dim=-1), normalize(text_tokens[:, 1:], dim=-1)
    exponent = scale * (image @ text.mT)
    if attention_mask is None:
        return exponent.flatten(1).logsumexp(1) / scale
    real = attention_mask[:, 1:]
    return _masked_log_sum_exp(exponent, real[:, None].expand_as(exponent)) / scale


@_full_precision
def margin_contrast(
    positive: Tensor,
    negatives: Tensor,
    delta: float,
    scale: float,
    negative_mask: Tensor | None = None,
) -> Tensor:
    """H (Eq. 2): the hinge of the positive over a log-sum-exp of the negatives.

    Args:
        positive: f(x, y), (B,).
        negatives: f(x, z), (B, K).
        delta: δ, the margin.
        scale: λ.
        negative_mask: True where z counts as a negative, (B, K) bool; a row without any gives 0.

    Returns:
        (B,).
    """
    exponent = scale * negatives
    if negative_mask is None:
        return (delta - positive + exponent.logsumexp(1) / scale).clamp(min=0)
    hinge = (delta - positive + _masked_log_sum_exp(exponent, negative_mask) / scale).clamp(min=0)
    return torch.where(negative_mask.any(1), hinge, 0)


def _masked_log_sum_exp(exponent: Tensor, mask: Tensor) -> Tensor:
    """log Σ exp over all axes but the first, where ``mask`` is True; a row without any gives 0."""
    exponent, mask = exponent.flatten(1), mask.flatten(1)
    some = mask.any(1)
    # A row of −inf alone has NaN gradients, hence a finite stand-in there.
    exponent = exponent.masked_fill(~mask & some[:, None], -math.inf)
    return torch.where(some, exponent.logsumexp(1), 0)


@_full_precision
def l2_normalize(x: Tensor, dim: int = -1, eps: float = 1e-8) -> Tensor:
    """x / ‖x‖₂; a run shorter than ``eps`` has no direction: it becomes zero, without gradient."""
    return _normalize(x, 2, dim, eps)


@_full_precision
def l1_normalize(x: Tensor, dim: int = -1, eps: float = 1e-8) -> Tensor:
    """x / Σ|x|; a run whose sum is below ``eps`` becomes zero, without gradient."""
    return _normalize(x, 1, dim, eps)


def _normalize(x: Tensor, order: int, dim: int, eps: float) -> Tensor:
    length = torch.linalg.vector_norm(x, order, dim, keepdim=True)
    # The gradient of 1 / length would be NaN at 0, and that of x / eps would drown all others.
    return x * length.clamp(min=eps).reciprocal().masked_fill(length < eps, 0)


@_full_precision
def centroid_distance(projected: Tensor, centroids: Tensor) -> Tensor:
    """X_euclid = Σ_D (X − C)² (T-EMDE, Sec. 3.2, "Distance computation").

    Args:
        projected: X, a token's place in every space, (…, N, K, D); (…, N, 1, D) where the
            centroids of a partition share one space.
        centroids: C, (N, K, D).

    Returns:
        (…, N, K).
    """
    return (projected - centroids).square().sum(-1)


@_full_precision
def soft_assignment(distance: Tensor, temperature: Tensor) -> Tensor:
    """Y = softmax_K(−temp · X_euclid) (T-EMDE, Sec. 3.2 with the sign of Listing 1), (…, N, K)."""
    return (-temperature * distance).softmax(-1)


@_full_precision
def sketch(assignment: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """The sum of the assignments of a set's tokens (T-EMDE, Secs. 3.1 and 3.3.1).

    Sketches add: that of a union is the sum of the parts'.

    Args:
        assignment: (B, L, N, K).
        attention_mask: True for real tokens, (B, L) bool, None for all.

    Returns:
        (B, N, K).
    """
    if attention_mask is not None:
        assignment = assignment.masked_fill(~attention_mask[..., None, None], 0)
    return assignment.sum(1)
