"""LXMERT's object encoder: regions with their boxes, related to one another."""

from torch import Tensor, nn

from xmodal.models.backbones.encoder import Encoder, require_feature_dims
from xmodal.models.layers import EncoderLayer, init_linear
from xmodal.registry import MODELS
from xmodal.structures import Regions, Tokens


class ObjectEmbedding(nn.Module):
    """Object-level embeddings, v = (LN(W_F f + b_F) + LN(W_P p + b_P)) / 2 (LXMERT, Sec. 2.1).

    Args:
        feature_dims: F, width of f.
        embed_dims: D.
        dropout: probability, after the average.
    """

    def __init__(self, feature_dims: int, embed_dims: int, dropout: float) -> None:
        super().__init__()
        self.features = nn.Linear(feature_dims, embed_dims)
        self.features_norm = nn.LayerNorm(embed_dims, eps=1e-12)
        self.boxes = nn.Linear(4, embed_dims)
        self.boxes_norm = nn.LayerNorm(embed_dims, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor, boxes: Tensor) -> Tensor:
        """f (B, R, F) and p (B, R, 4) to v (B, R, D)."""
        features = self.features_norm(self.features(features))
        return self.dropout((features + self.boxes_norm(self.boxes(boxes))) / 2)


@MODELS.register_module()
class ObjectEncoder(Encoder):
    """Object-level embeddings and the object relationship encoder (LXMERT, Secs. 2.1 and 2.2).

    Args:
        feature_dims: F, width of a region's features.
        embed_dims: D, width of the tokens.
        depth: N_R, number of layers.
        num_heads: heads of each attention.
        feedforward_dims: width of the feed-forward blocks; None for 4 D.
        dropout: probability, as BERT's.

    Shape:
        regions: features (B, R, F) and boxes (B, R, 4), any R. Returns tokens (B, R, D) without
        [CLS]; mask and boxes are carried along.
    """

    has_cls = False

    def __init__(
        self,
        feature_dims: int = 2048,
        embed_dims: int = 768,
        depth: int = 5,
        num_heads: int = 12,
        feedforward_dims: int | None = None,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.feature_dims, self.embed_dims = feature_dims, embed_dims
        self.embedding = ObjectEmbedding(feature_dims, embed_dims, dropout)
        self.layers = nn.ModuleList(
            EncoderLayer(embed_dims, num_heads, feedforward_dims or 4 * embed_dims, dropout)
            for _ in range(depth)
        )
        init_linear(self, embed_dims)
        # A hidden region has features of zeros, and W_F 0 + b_F of zeros has no direction: the norm
        # after it would have a slope of 1e6, in which the clipping drowns all other gradients.
        nn.init.normal_(self.embedding.features.bias, std=0.02)

    def embed(self, regions: Regions) -> Tokens:
        """Object-level embeddings of the regions of B images.

        Raises:
            ValueError: when the features have another width, or boxes are missing.
        """
        require_feature_dims(regions, self.feature_dims)
        if regions.boxes is None:
            raise ValueError(
                'ObjectEncoder embeds the boxes of regions, and these have none: read features '
                'that come with boxes (docs/regions.md)'
            )
        embeddings = self.embedding(regions.features, regions.boxes)
        return Tokens(embeddings, regions.attention_mask, boxes=regions.boxes)

    def encode(self, tokens: Tokens) -> Tokens:
        """The N_R layers."""
        embeddings = tokens.embeddings
        for layer in self.layers:
            embeddings = layer(embeddings, tokens.attention_mask)
        return tokens.with_embeddings(embeddings)
