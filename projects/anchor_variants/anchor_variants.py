"""Anchors found in other ways than by Eq. 3 of ACE-RPE alone."""

import torch
from torch import Tensor, nn

from xmodal.models.necks import AnchorRelativePosition
from xmodal.registry import MODELS
from xmodal.structures import Tokens

_NOTHING = -1e4  # logarithm of a share of nothing; of −∞ gradients are NaN


@MODELS.register_module()
class ProjectedAnchors(AnchorRelativePosition):
    """Compares tokens after a learned projection of each modality, which starts as the identity.

    A group of the similarity then sees the whole token. Nothing but the objectives of the fusion
    encoder trains the projections, through the distances of anchors.
    """

    def __init__(self, depth: int, embed_dims: int, num_heads: int, **options) -> None:
        super().__init__(depth, embed_dims, num_heads, **options)
        self.image_proj = nn.Linear(embed_dims, embed_dims, bias=False)
        self.text_proj = nn.Linear(embed_dims, embed_dims, bias=False)
        for projection in (self.image_proj, self.text_proj):
            nn.init.eye_(projection.weight)

    def similarity(self, image: Tokens, text: Tokens) -> Tensor:
        """S_G (Eq. 3) of the projected tokens, (B, 1+M, 1+N, G)."""
        return super().similarity(
            image.with_embeddings(self.image_proj(image.embeddings)),
            text.with_embeddings(self.text_proj(text.embeddings)),
        )


@MODELS.register_module()
class QuantileAnchors(AnchorRelativePosition):
    """The same share of pairs of patch and word are anchors in every image, text and group.

    Args:
        quantile: share of the pairs that are none.
    """

    def __init__(
        self, depth: int, embed_dims: int, num_heads: int, quantile: float = 0.8, **options
    ) -> None:
        super().__init__(depth, embed_dims, num_heads, **options)
        self.quantile = quantile

    def similarity(self, image: Tokens, text: Tokens) -> Tensor:
        """S_G shifted so that its quantile over real pairs is δ, (B, 1+M, 1+N, G)."""
        similarity = super().similarity(image, text)
        padded = ~image.pairs_with(text)[..., None]
        pairs = similarity.detach().masked_fill(padded, torch.nan).flatten(1, 2)
        quantile = pairs.nanquantile(self.quantile, dim=1)[:, None, None]
        return similarity - quantile + self.delta


@MODELS.register_module()
class TransportAnchors(AnchorRelativePosition):
    """Patches and words are matched by optimal transport with an entropy term (Cuturi, 2013).

    Every patch sends as much as another, and every word receives as much as another. A pair is an
    anchor where it carries more than in a plan without preferences.

    Args:
        epsilon: weight of the entropy; small values make plans sharp.
        steps: of Sinkhorn's algorithm.
    """

    def __init__(
        self,
        depth: int,
        embed_dims: int,
        num_heads: int,
        epsilon: float = 0.1,
        steps: int = 10,
        **options,
    ) -> None:
        super().__init__(depth, embed_dims, num_heads, **options)
        self.epsilon, self.steps = epsilon, steps

    def similarity(self, image: Tokens, text: Tokens) -> Tensor:
        """The plan over the uniform one, minus 1: above 0 is more, (B, 1+M, 1+N, G)."""
        padded = ~image.pairs_with(text)[..., None]
        plan = super().similarity(image, text) / self.epsilon
        # Each step lets a mean over real pairs be 1: over the words of a patch, then the patches of
        # a word.
        counts = [(~padded).sum(axis, keepdim=True).clamp(min=1).log() for axis in (2, 1)]
        for _ in range(self.steps):
            for axis, count in zip((2, 1), counts, strict=True):
                plan = plan.masked_fill(padded, _NOTHING)
                plan = plan - plan.logsumexp(axis, keepdim=True) + count
        return plan.exp().masked_fill(padded, 0) - 1
