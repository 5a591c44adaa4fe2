"""Anchors: similarity and distance of patches and words (ACE-RPE, Eqs. 3-6)."""

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

from xmodal.functional.precision import full_precision
from xmodal.functional.sharing import is_shared, shared_product


def check_groups(key: str, groups: int, embed_dims: int) -> None:
    """Raises ValueError unless the groups of the similarity (Eq. 3) divide the width of tokens."""
    if groups < 1 or embed_dims % groups:
        raise ValueError(f'{key}={groups} must divide the width of the tokens, {embed_dims}')


@full_precision
def multi_group_similarity(image_tokens: Tensor, text_tokens: Tensor, groups: int) -> Tensor:
    """S_G (Eq. 3): cosine similarity of every patch and word, group by group.

    Args:
        image_tokens: (B, 1 + M, D).
        text_tokens: (B, 1 + N, D).
        groups: G; D is split into G runs of D / G.

    Returns:
        (B, 1 + M, 1 + N, G).
    """
    image, text = (_unit_groups(tokens, groups) for tokens in (image_tokens, text_tokens))
    return shared_product(text, image.mT).permute(0, 3, 2, 1).contiguous()


def unit_groups(tokens: Tensor, groups: int) -> Tensor:
    """Tokens (B, L, D) with each of their groups at length 1, (B, L, D)."""
    return normalize(tokens.unflatten(-1, (groups, -1)), dim=-1).flatten(2)


def _unit_groups(tokens: Tensor, groups: int) -> Tensor:
    """Each group of each token at length 1, (B, G, L, D / G); once where pairs share tokens."""
    parts = tokens[:1] if is_shared(tokens) else tokens
    parts = normalize(parts.unflatten(-1, (groups, -1)).transpose(1, 2), dim=-1)
    return parts.expand(tokens.shape[0], *parts.shape[1:])


@full_precision
def soft_shrink(similarity: Tensor, delta: float = 0.05, tau: float = 1e4) -> Tensor:
    """Ŝ_G (Eq. 4): similarities below δ vanish steeply.

    This is the equation alone; the models take :func:`anchor_distance`, which has Eq. 6 in it.
    The exponent is clamped at 0, so that the unused branch cannot overflow: its gradient would be
    NaN.
    """
    shrunk = delta * (tau * (similarity - delta)).clamp(max=0.0).exp()
    return torch.where(similarity >= delta, similarity, shrunk)


def anchor_mask(similarity: Tensor, delta: float = 0.05) -> Tensor:
    """A_G (Eq. 5), pair by pair: where Ŝ_G ≥ δ, which is where S_G ≥ δ; bool."""
    return similarity >= delta


@full_precision
def anchor_distance(similarity: Tensor, delta: float = 0.05, tau: float = 1e4) -> Tensor:
    """D_G = 1 / Ŝ_G (Eqs. 4 and 6).

    A distance above 2 / δ is +inf: nothing is anchored there. In the thin band between, of width
    ln 2 / τ, the slope would reach 2 τ / δ and drown every other gradient: none flows there.
    1 / :func:`soft_shrink` has it.

    Args:
        similarity: S_G, any shape.
        delta: δ.
        tau: τ.
    """
    exponent = tau * (delta - similarity.detach())
    excess = exponent.clamp(0.0, math.log(2)).expm1() / delta
    excess = excess.masked_fill(exponent > math.log(2), math.inf)
    return 1 / similarity.clamp(min=delta) + excess
