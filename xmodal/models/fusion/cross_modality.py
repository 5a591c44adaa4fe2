"""The cross-modality encoder of LXMERT."""

from torch import Tensor, nn

from xmodal.models.layers import Attention, EncoderLayer, init_linear
from xmodal.models.necks.position import (
    NoPosition,
    cross_terms,
    embed_inputs,
    relate,
    self_bias,
)
from xmodal.registry import MODELS
from xmodal.structures import CrossAttentions, CrossTerms, Fused, Relation, Tokens


class CrossAttention(nn.Module):
    """Attention from one modality to the other, residual and post-norm as in BERT.

    Args:
        embed_dims: D.
        num_heads: heads of the attention.
        dropout: probability, as BERT's.
    """

    def __init__(self, embed_dims: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(embed_dims, num_heads, dropout)
        self.norm = nn.LayerNorm(embed_dims, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, query: Tokens, context: Tokens, terms: CrossTerms, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """The query tokens (B, L, D) after attention to the context, and probabilities or None."""
        attended, weights = self.attention(
            self.attention.project(query.embeddings, context=False),
            self.attention.project(context.embeddings, query=False),
            context.attention_mask,
            terms,
            need_weights,
        )
        return self.norm(query.embeddings + self.dropout(attended)), weights


class CrossModalityLayer(nn.Module):
    """Cross-attention both ways, then self-attention and feed-forward of each modality (Sec. 2.2).

    Args:
        embed_dims: D.
        num_heads: heads of every attention.
        feedforward_dims: width of the feed-forward blocks.
        dropout: probability, as BERT's.
        share_cross_attention: one set of weights for both directions.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        feedforward_dims: int,
        dropout: float,
        share_cross_attention: bool,
    ) -> None:
        super().__init__()
        # Words look at regions by the first, regions at words by the last.
        self.cross_attention = nn.ModuleList(
            CrossAttention(embed_dims, num_heads, dropout)
            for _ in range(1 if share_cross_attention else 2)
        )
        self.text_layer = EncoderLayer(embed_dims, num_heads, feedforward_dims, dropout)
        self.image_layer = EncoderLayer(embed_dims, num_heads, feedforward_dims, dropout)

    def forward(
        self,
        image: Tokens,
        text: Tokens,
        position: NoPosition,
        index: int,
        relation: Relation | None,
        need_image: bool,
        need_weights: bool,
    ) -> tuple[Tensor | None, Tensor, CrossAttentions]:
        """New embeddings of the image (None where not needed) and of the text, and attentions.

        Both directions read the tokens that enter the layer.
        """
        pairs, num_words, _ = text.embeddings.shape
        num_regions = image.embeddings.shape[1]
        terms = cross_terms(position, index, relation, 'text', (pairs, num_words, num_regions))
        words, text_to_image = self.cross_attention[0](text, image, terms, need_weights)
        words = self.text_layer(words, text.attention_mask, self_bias(position, index, text))
        if not need_image:
            return None, words, CrossAttentions(text_to_image, None)
        terms = cross_terms(position, index, relation, 'image', (pairs, num_regions, num_words))
        regions, image_to_text = self.cross_attention[-1](image, text, terms, need_weights)
        regions = self.image_layer(regions, image.attention_mask, self_bias(position, index, image))
        return regions, words, CrossAttentions(text_to_image, image_to_text)


@MODELS.register_module()
class CrossModalityEncoder(nn.Module):
    """Layers of cross-attention, self-attention and feed-forward over two streams (LXMERT).

    Unlike :class:`xmodal.models.fusion.FusionEncoder` a layer begins with the cross-attention, and
    each modality has its own weights but for that one. ĥ = CrossAtt_{L→R}(h, {v}),
    v̂ = CrossAtt_{R→L}(v, {h}), h̃ = SelfAtt_{L→L}(ĥ, {ĥ}), h' = FF(h̃), and the like for v.

    Args:
        depth: N_X, number of layers.
        embed_dims: D.
        num_heads: heads of each attention.
        feedforward_dims: width of the feed-forward blocks; None for 4 D.
        dropout: probability, as BERT's.
        share_cross_attention: one set of weights for both directions of a layer, as the released
            code has it; the paper draws two functions.
    """

    def __init__(
        self,
        depth: int = 5,
        embed_dims: int = 768,
        num_heads: int = 12,
        feedforward_dims: int | None = None,
        dropout: float = 0.1,
        share_cross_attention: bool = True,
    ) -> None:
        super().__init__()
        self.depth, self.embed_dims, self.num_heads = depth, embed_dims, num_heads
        self.layers = nn.ModuleList(
            CrossModalityLayer(
                embed_dims,
                num_heads,
                feedforward_dims or 4 * embed_dims,
                dropout,
                share_cross_attention,
            )
            for _ in range(depth)
        )
        init_linear(self, embed_dims)

    def forward(
        self,
        image: Tokens,
        text: Tokens,
        position: NoPosition,
        need_image: bool = True,
        need_attentions: bool = False,
    ) -> Fused:
        """Fuses images and texts row by row.

        Args:
            image: (B, R, D), without [CLS].
            text: (B, 1 + N, D).
            position: the position plug-in.
            need_image: whether to compute the image stream of the last layer.
            need_attentions: whether to return the cross-attention's probabilities.

        Returns:
            Both streams; ``image_tokens`` is None without ``need_image``.
        """
        image, text = embed_inputs(position, image, text)
        relation = relate(position, image, text)
        attentions = []
        for index, layer in enumerate(self.layers):
            keep_image = need_image or index + 1 < self.depth
            regions, words, weights = layer(
                image, text, position, index, relation, keep_image, need_attentions
            )
            image, text = image.with_embeddings(regions), text.with_embeddings(words)
            attentions.append(weights)
        return Fused(
            image.embeddings, text.embeddings, attentions if need_attentions else None, relation
        )
