"""The layer of the fusion encoder."""

from typing import NamedTuple

from torch import Tensor, nn

from xmodal.models.fusion.stream import Stream
from xmodal.models.layers import QKV, Attention, FeedForward
from xmodal.models.necks.position import NoPosition, cross_terms, self_bias
from xmodal.structures import CrossAttentions, CrossTerms, Relation, select_tokens
from xmodal.structures.relation import select_biases


class LayerNeeds(NamedTuple):
    """What is needed of a layer.

    Attributes:
        image: whether patches look at words.
        words: the words of each pair that are needed, (P, W) int64; None for all.
        attentions: whether the probabilities of the cross-attention are.
    """

    image: bool
    words: Tensor | None
    attentions: bool


class FusionLayer(nn.Module):
    """Self-attention, cross-attention and feed-forward, post-norm as in BERT.

    One set of weights serves whichever stream passes through. The steps are apart because the
    first two depend on one modality alone and are therefore done once for all pairs it is in.

    Args:
        embed_dims: D.
        num_heads: heads of both attentions.
        feedforward_dims: width of the feed-forward block.
        dropout: probability, as BERT's.
        has_image_stream: whether patches look at words, too (ACE-RPE). In ALBEF only words look, at
            the image encoder's tokens, by a cross-attention with an output projection.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        feedforward_dims: int,
        dropout: float,
        has_image_stream: bool,
    ) -> None:
        super().__init__()
        self.has_image_stream = has_image_stream
        self.self_attention = Attention(embed_dims, num_heads, dropout)
        self.self_norm = nn.LayerNorm(embed_dims, eps=1e-12)
        self.cross_attention = Attention(
            embed_dims, num_heads, dropout, output_projection=not has_image_stream
        )
        self.cross_norm = nn.LayerNorm(embed_dims, eps=1e-12)
        self.feed_forward = FeedForward(embed_dims, feedforward_dims, dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        image: Stream,
        text: Stream,
        position: NoPosition,
        index: int,
        relation: Relation | None,
        needs: LayerNeeds,
    ) -> tuple[Stream, Stream, CrossAttentions]:
        """Both streams after the layer, and its attentions.

        Args:
            image: the patches.
            text: the words.
            position: the position plug-in.
            index: number of the layer.
            relation: of the pairs, from ``position``.
            needs: of the layer.
        """
        (pairs, num_words), num_patches = text.size, image.size[1]
        terms = cross_terms(position, index, relation, 'text', (pairs, num_words, num_patches))
        if needs.words is not None:
            text, terms = text.paired(), terms.select_queries(needs.words)
        if self.has_image_stream:
            image = self._after_self_attention(image, position, index)
        text = self._after_self_attention(text, position, index, needs.words)

        project = self.cross_attention.project
        image_qkv = image.pair(project(image.tokens.embeddings, query=needs.image))
        text_qkv = text.pair(project(text.tokens.embeddings, context=needs.image))
        text, image_mask = text.paired(), image.paired_mask()

        words, text_to_image = self.attend_cross(
            text.tokens.embeddings, text_qkv, image_qkv, image_mask, terms, needs.attentions
        )
        text = text.with_embeddings(words)
        if not needs.image:
            return image, text, CrossAttentions(text_to_image, None)
        image = image.paired()
        terms = cross_terms(position, index, relation, 'image', (pairs, num_patches, num_words))
        patches, image_to_text = self.attend_cross(
            image.tokens.embeddings,
            image_qkv,
            text_qkv,
            text.tokens.attention_mask,
            terms,
            needs.attentions,
        )
        image = image.with_embeddings(patches)
        return image, text, CrossAttentions(text_to_image, image_to_text)

    def _after_self_attention(
        self, stream: Stream, position: NoPosition, index: int, queries: Tensor | None = None
    ) -> Stream:
        tokens = stream.tokens
        bias = self_bias(position, index, tokens)
        attended = self.attend_self(tokens.embeddings, tokens.attention_mask, bias, queries)
        return stream.with_embeddings(attended)

    def attend_self(
        self,
        tokens: Tensor,
        mask: Tensor | None,
        bias: Tensor | None,
        queries: Tensor | None = None,
    ) -> Tensor:
        """Self-attention of one stream.

        Args:
            tokens: (B, L, D).
            mask: True for real tokens, (B, L) bool.
            bias: added to the logits, (B or 1, heads, L, L), or None.
            queries: the tokens that attend, (B, W) int64; None for all.

        Returns:
            The new tokens, (B, L, D), or (B, W, D) of ``queries``.
        """
        if queries is None:
            query = context = self.self_attention.project(tokens)
        else:
            context = self.self_attention.project(tokens, query=False)
            tokens = select_tokens(tokens, queries)
            query = self.self_attention.project(tokens, context=False)
            bias = None if bias is None else select_biases(bias, queries)
        attended, _ = self.self_attention(query, context, mask, CrossTerms(bias=bias))
        return self.self_norm(tokens + self.dropout(attended))

    def attend_cross(
        self,
        tokens: Tensor,
        query: QKV,
        context: QKV,
        context_mask: Tensor | None,
        terms: CrossTerms,
        need_weights: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """Cross-attention and feed-forward of one stream: new tokens, and probabilities or None."""
        attended, weights = self.cross_attention(query, context, context_mask, terms, need_weights)
        return self.feed_forward(self.cross_norm(tokens + self.dropout(attended))), weights
