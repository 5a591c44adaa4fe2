"""Image encoders of a detector's region features."""

from xmodal import functional as F
from xmodal.models.backbones.encoder import Encoder, require_feature_dims
from xmodal.models.layers import xavier_linear
from xmodal.registry import MODELS
from xmodal.structures import Regions, Tokens


@MODELS.register_module()
class RegionEncoder(Encoder):
    """One linear layer over the regions of an image, L2-normalised (SCAN, SGRAF).

    Args:
        feature_dims: F, width of a region's features.
        embed_dims: D, width of the tokens; None leaves the features as they are, which a model
            pools that has its layers after the pooling.

    Shape:
        regions: features (B, R, F), any R. Returns tokens (B, R, D) without [CLS]; mask and boxes
        are carried along.
    """

    has_cls = False

    def __init__(self, feature_dims: int = 2048, embed_dims: int | None = 1024) -> None:
        super().__init__()
        self.feature_dims, self.embed_dims = feature_dims, embed_dims or feature_dims
        self.projection = None if embed_dims is None else xavier_linear(feature_dims, embed_dims)

    def embed(self, regions: Regions) -> Tokens:
        """The linear layer over the regions of B images.

        Raises:
            ValueError: when the features have another width.
        """
        require_feature_dims(regions, self.feature_dims)
        features = regions.features
        embeddings = features if self.projection is None else self.projection(features)
        return Tokens(embeddings, regions.attention_mask, boxes=regions.boxes)

    def encode(self, tokens: Tokens) -> Tokens:
        """The L2 norm: a region is related to no other."""
        if self.projection is None:
            return tokens
        return tokens.with_embeddings(F.l2_normalize(tokens.embeddings))
