"""The image encoder of grid features that were computed before."""

import torch
from torch import nn

from xmodal.models.backbones.encoder import Encoder, require_feature_dims
from xmodal.registry import MODELS
from xmodal.structures import Regions, Tokens


@MODELS.register_module()
class GridFeatureEncoder(Encoder):
    """The features of a grid's cells as tokens, after a token that sums the image up, their mean.

    Of the features that :class:`GridExtractor` computed with a CNN it makes the tokens that
    :class:`TimmImageEncoder` makes of the pixels, with that CNN frozen.

    Args:
        feature_dims: F, width of the features.
        embed_dims: D, width of the tokens, by a linear layer each for cells and summary.

    Shape:
        regions: features (B, M, F) of a square grid. Returns tokens of (B, 1 + M, D) with the grid.
    """

    has_cls = True

    def __init__(self, feature_dims: int, embed_dims: int) -> None:
        super().__init__()
        self.feature_dims, self.embed_dims = feature_dims, embed_dims
        self.cell_projection = nn.Linear(feature_dims, embed_dims)
        self.summary_projection = nn.Linear(feature_dims, embed_dims)

    def embed(self, regions: Regions) -> Tokens:
        """The linear layers: there is no block after them.

        Raises:
            ValueError: when the features have another width, or are no square grid.
        """
        require_feature_dims(regions, self.feature_dims)
        count = regions.features.shape[1]
        side = round(count**0.5)
        if side**2 != count or not regions.attention_mask.all():
            raise ValueError(
                'GridFeatureEncoder takes the cells of a square grid (GridExtractor), found '
                f'{regions.attention_mask.sum(1).tolist()[:4]} regions: of a detector, take '
                'RegionEncoder'
            )
        summary = self.summary_projection(regions.features.mean(1, keepdim=True))
        tokens = torch.cat([summary, self.cell_projection(regions.features)], 1)
        return Tokens(tokens, grid_size=(side, side))

    def encode(self, tokens: Tokens) -> Tokens:
        """The tokens as they are."""
        return tokens
