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
