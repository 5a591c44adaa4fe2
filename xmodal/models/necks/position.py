"""The interface of a position, which relates words and patches inside a fusion encoder.

A position may act at four points, all of them optional:

1. ``embed_inputs``: once, on the tokens that enter the fusion encoder (absolute embeddings);
2. ``relate``: once a forward pass, what relates words and patches, for all layers;
3. ``self_bias``: in a layer's self-attention, a bias on the logits (relative position within one
   modality);
4. ``cross_terms``: in a layer's cross-attention, additions to queries, keys, values and logits.

:class:`NoPosition` does nothing at any of them; a plug-in overrides what it needs.
"""

from torch import Tensor, nn

from xmodal.registry import MODELS
from xmodal.structures import CrossTerms, Relation, Tokens


@MODELS.register_module(name=['NoPosition', 'none'])
class NoPosition(nn.Module):
    """No position in the fusion encoder, and the base class of every other.

    Args:
        depth: number of fusion layers.
        embed_dims: D, the width of the tokens.
        num_heads: heads of a fusion layer.

    Attributes:
        has_similarities: whether ``relate`` gives the similarities of Eq. 3 of ACE-RPE.
    """

    has_similarities = False

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
        self, relation: Relation | None, text_mask: Tensor, image_mask: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Figures of each pair for the log, (B,) by name; none by default.

        Args:
            relation: of the pairs.
            text_mask: True for words, (B, 1 + N) bool.
            image_mask: True for regions, (B, R) bool; None where an image is patches after [CLS].
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


def self_bias(position: NoPosition, layer: int, tokens: Tokens) -> Tensor | None:
    """A position's bias on the logits of a layer's self-attention.

    Raises:
        ValueError: when it does not fit the attention of these tokens.
    """
    bias = position.self_bias(layer, tokens)
    if bias is not None:
        batch, length, _ = tokens.embeddings.shape
        heads = position.num_heads
        allowed = (1, batch), (1, heads), (length,), (length,)
        if bias.ndim != 4 or any(n not in a for n, a in zip(bias.shape, allowed, strict=True)):
            raise ValueError(
                f'{type(position).__name__}.self_bias returned the shape {tuple(bias.shape)}, '
                f'expected ({batch} or 1, {heads}, {length}, {length}): pairs, heads, queries, keys'
            )
    return bias
