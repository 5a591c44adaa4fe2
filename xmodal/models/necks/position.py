"""The interface of a position, which relates words and patches inside a fusion encoder.

A position may act at four points, all of them optional:

1. ``embed_inputs``: once, on the tokens that enter the fusion encoder (absolute embeddings);
2. ``relate``: once a forward pass, what relates words and patches, for all layers;
3. ``self_bias``: in a layer's self-attention, a bias on the logits (relative position within one
   modality);
4. ``cross_terms``: in a layer's cross-attention, additions to queries, keys, values and logits.

:class:`NoPosition` does nothing at any of them; a plug-in overrides what it needs.
"""

import torch
from torch import Tensor, nn

from xmodal.registry import MODELS
from xmodal.structures import CrossTerms, LowRank, Relation, Tokens


@MODELS.register_module(name=['NoPosition', 'none'])
class NoPosition(nn.Module):
    """No position in the fusion encoder, and the base class of every other.

    Args:
        depth: number of fusion layers.
        embed_dims: D, the width of the tokens.
        num_heads: heads of a fusion layer.

    Attributes:
        has_similarities: whether ``relate`` gives the similarities of Eq. 3 of ACE-RPE.
        max_length: the longest text that it takes, in tokens; None for any.
    """

    has_similarities = False
    max_length: int | None = None

    def __init__(self, depth: int, embed_dims: int, num_heads: int) -> None:
        super().__init__()
        self.depth, self.embed_dims, self.num_heads = depth, embed_dims, num_heads

    def embed_inputs(self, image: Tokens, text: Tokens) -> tuple[Tokens, Tokens]:
        """Changes the tokens as they enter the fusion encoder."""
        return image, text

    def relate(self, image: Tokens, text: Tokens) -> Relation | None:
        """Relates words and patches, once a forward pass; sees the encoders' outputs."""
        return None

    def self_bias(self, layer: int, tokens: Tokens) -> Tensor | None:
        """Bias on the logits of a layer's self-attention, (B or 1, heads, L, L)."""
        return None

    def cross_terms(self, layer: int, relation: Relation | None, queries: str) -> CrossTerms:
        """What is added to a layer's cross-attention; ``queries`` is 'text' or 'image'."""
        return CrossTerms()

    def statistics(
        self, relation: Relation | None, text_mask: Tensor, image_mask: Tensor
    ) -> dict[str, Tensor]:
        """Figures of each pair for the log, (B,) by name; none by default.

        Args:
            relation: of the pairs.
            text_mask: True for words, (B, 1 + N) bool.
            image_mask: True for patches, not for [CLS], (B, 1 + M) bool; or for regions, (B, R).
        """
        return {}


def embed_inputs(position: NoPosition, image: Tokens, text: Tokens) -> tuple[Tokens, Tokens]:
    """What a position makes of the tokens that enter the fusion encoder.

    Raises:
        ValueError: when that is something else than as many tokens of the same width.
    """
    found = position.embed_inputs(image, text)
    if not isinstance(found, tuple) or [type(one) for one in found] != [Tokens, Tokens]:
        raise ValueError(
            f'{type(position).__name__}.embed_inputs returned {type(found).__name__}, expected '
            'Tokens of the image and of the text: image.with_embeddings(…), text'
        )
    for name, before, after in zip(('image', 'text'), (image, text), found, strict=True):
        if before.embeddings.shape != after.embeddings.shape:
            raise ValueError(
                f'{type(position).__name__}.embed_inputs returned tokens of the {name} of shape '
                f'{tuple(after.embeddings.shape)}, expected {tuple(before.embeddings.shape)}'
            )
    return found


def relate(position: NoPosition, image: Tokens, text: Tokens) -> Relation | None:
    """What a position relates words and patches by.

    Raises:
        ValueError: when that is no :class:`Relation`.
    """
    relation = position.relate(image, text)
    if not isinstance(relation, Relation | None):
        raise ValueError(
            f'{type(position).__name__}.relate returned {type(relation).__name__}, expected a '
            'Relation, whose fields cross_terms reads, or None'
        )
    return relation


def self_bias(position: NoPosition, layer: int, tokens: Tokens) -> Tensor | None:
    """A position's bias on the logits of a layer's self-attention.

    Raises:
        ValueError: when it does not fit the attention of these tokens.
    """
    bias = position.self_bias(layer, tokens)
    batch, length, _ = tokens.embeddings.shape
    name = f'{type(position).__name__}.self_bias'
    _check_bias(name, bias, (batch, position.num_heads, length, length))
    return bias


def cross_terms(
    position: NoPosition,
    layer: int,
    relation: Relation | None,
    queries: str,
    size: tuple[int, int, int],
) -> CrossTerms:
    """What a position adds to a layer's cross-attention.

    Args:
        position: the position plug-in.
        layer: number of the layer.
        relation: of the pairs.
        queries: 'text' or 'image'.
        size: numbers of pairs, of queries and of keys.

    Raises:
        ValueError: when it does not fit the attention of this size.
    """
    terms = position.cross_terms(layer, relation, queries)
    name = f"{type(position).__name__}.cross_terms('{queries}')"
    if not isinstance(terms, CrossTerms):
        raise ValueError(
            f'{name} returned {type(terms).__name__}, expected CrossTerms(query, key, value, '
            'pairs, bias), each of them optional'
        )
    pairs, length, context = size
    shapes = {
        'query': (pairs, length),
        'key': (pairs, context),
        'value': (pairs, context),
        'pairs': size,
    }
    for role, shape in shapes.items():
        _check_low_rank(f'{name}.{role}', getattr(terms, role), shape, position.embed_dims)
    _check_bias(f'{name}.bias', terms.bias, (pairs, position.num_heads, length, context))
    return terms


def _check_bias(name: str, bias: Tensor | None, size: tuple[int, int, int, int]) -> None:
    if bias is None:
        return
    pairs, heads, length, context = size
    allowed = (1, pairs), (1, heads), (length,), (context,)
    if bias.ndim != 4 or any(n not in sizes for n, sizes in zip(bias.shape, allowed, strict=True)):
        raise ValueError(
            f'{name} has the shape {tuple(bias.shape)}, expected ({pairs} or 1, {heads} or 1, '
            f'{length}, {context}): pairs, heads, queries, keys'
        )
    if bias.dtype == torch.bool:
        raise ValueError(
            f'{name} is a mask of torch.bool, and a bias is added to the logits: give numbers, 0 '
            "where a query may attend and -inf where not. Padding is the layer's to hide"
        )


def _check_low_rank(
    name: str, term: LowRank | None, shape: tuple[int, ...], embed_dims: int
) -> None:
    if term is None:
        return
    if not isinstance(term, LowRank):
        raise ValueError(
            f'{name} is {type(term).__name__}, expected LowRank(features, weight), the factors of '
            'what is added'
        )
    features, weight = term.features.shape, term.weight.shape
    if (*features[:-1], *weight) != (*shape, features[-1], embed_dims):
        raise ValueError(
            f'{name} has features {tuple(features)} and weight {tuple(weight)}, expected '
            f'({", ".join(map(str, shape))}, C) and (C, {embed_dims})'
        )
