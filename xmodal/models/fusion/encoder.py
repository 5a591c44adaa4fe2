"""The fusion encoder: words and patches look at each other."""

from torch import Tensor, nn

from xmodal.models.layers.attention import QKV
from xmodal.models.layers.encoder_layer import FusionLayer, init_linear
from xmodal.models.necks.position import NoPosition, Relation
from xmodal.registry import MODELS
from xmodal.structures import CrossAttentions, Fused, Tokens


class _Stream:
    """One modality on its way through the layers.

    Until it has met the other modality, a stream holds a row for each *distinct* image or text of
    the call; ``rows`` says which of them each pair takes.
    """

    def __init__(self, tokens: Tokens, rows: Tensor | None) -> None:
        self.tokens, self.rows = tokens, rows

    def update(self, embeddings: Tensor) -> None:
        """Replaces the embeddings, still a row for each distinct one."""
        self.tokens = self.tokens._replace(embeddings=embeddings)

    def pair(self, projected: QKV) -> QKV:
        """``projected`` with a row for each pair."""
        return projected if self.rows is None else projected.select(self.rows)

    def paired_tokens(self) -> Tokens:
        """The tokens with a row for each pair."""
        return self.tokens if self.rows is None else self.tokens.select(self.rows)

    def paired_mask(self) -> Tensor | None:
        """The attention mask with a row for each pair."""
        mask = self.tokens.attention_mask
        return mask if mask is None or self.rows is None else mask[self.rows]

    def meet(self, tokens: Tokens) -> None:
        """Takes over tokens that have seen the other modality, a row for each pair."""
        self.tokens, self.rows = tokens, None


@MODELS.register_module()
class FusionEncoder(nn.Module):
    """Layers of self-attention, cross-attention and feed-forward over two streams.

    ``streams='both'``: words look at patches and patches at words, with one set of weights, and
    cross-attention has no output projection (ACE-RPE; it is what 53.3M parameters leave room
    for). ``streams='text'``: only words look, at the image encoder's tokens, with an output
    projection (ALBEF).

    Args:
        depth: number of layers.
        embed_dims: D.
        num_heads: heads of each attention.
        feedforward_dims: width of the feed-forward blocks; None for 4 D.
        dropout: probability, as BERT's.
        streams: 'both' or 'text'.
    """

    def __init__(
        self,
        depth: int = 6,
        embed_dims: int = 768,
        num_heads: int = 12,
        feedforward_dims: int | None = None,
        dropout: float = 0.1,
        streams: str = 'both',
    ) -> None:
        super().__init__()
        if streams not in ('both', 'text'):
            raise ValueError(f"fusion.streams='{streams}', expected 'both' or 'text'")
        self.depth, self.embed_dims, self.num_heads = depth, embed_dims, num_heads
        self.both = streams == 'both'
        self.layers = nn.ModuleList(
            FusionLayer(
                embed_dims,
                num_heads,
                feedforward_dims or 4 * embed_dims,
                dropout,
                output_projection=not self.both,
            )
            for _ in range(depth)
        )
        init_linear(self, embed_dims)

    def forward(
        self,
        image: Tokens,
        text: Tokens,
        position: NoPosition,
        pairs: Tensor | None = None,
        need_image: bool = True,
        need_attentions: bool = False,
    ) -> Fused:
        """Fuses pairs of an image and a text.

        Args:
            image: (B, 1 + M, D).
            text: (B, 1 + N, D).
            position: the plug-in that relates them.
            pairs: rows of image and text to fuse, (P, 2) int64; None fuses row by row. What
                depends on an image or a text alone is computed once for all its pairs.
            need_image: whether the image stream of the last layer is wanted.
            need_attentions: whether to return the cross-attention's probabilities.

        Returns:
            Both streams with a row for each pair; ``image_tokens`` None where not wanted or, in the
            'text' layout, the tokens as they came.
        """
        image_rows, text_rows = (None, None) if pairs is None else pairs.unbind(1)
        image, text = position.embed_inputs(image, text)
        streams = [_Stream(image, image_rows)], _Stream(text, text_rows)
        return self._run(*streams, position, need_image, need_attentions)[0]

    def fuse_several(
        self,
        images: list[Tokens],
        text: Tokens,
        position: NoPosition,
        need_image: bool = True,
        need_attentions: bool = False,
    ) -> list[Fused]:
        """Fuses K images with a text, row by row.

        Every layer passes over the text K times, with the same weights: once with each image, in
        order, each time from where the image before it left the words. An image relates to the
        words by its own position. K = 1 is :meth:`forward`.

        Args:
            images: K of them, (B, 1 + M, D) each.
            text: (B, 1 + N, D).
            position: the plug-in that relates each image with the text.
            need_image: whether the image streams of the last layer are wanted.
            need_attentions: whether to return the cross-attention's probabilities.

        Returns:
            One result an image; the words, having seen all images, are the same in each.
        """
        entered = [position.embed_inputs(image, text) for image in images]
        streams = [_Stream(image, None) for image, _ in entered], _Stream(entered[0][1], None)
        return self._run(*streams, position, need_image, need_attentions)

    def _run(
        self,
        images: list[_Stream],
        text: _Stream,
        position: NoPosition,
        need_image: bool,
        need_attentions: bool,
    ) -> list[Fused]:
        """All layers over all images; a result an image."""
        relations = [
            position.relate(image.paired_tokens(), text.paired_tokens()) for image in images
        ]
        attentions: list[list[CrossAttentions]] = [[] for _ in images]
        for index, layer in enumerate(self.layers):
            see_text = self.both and (need_image or index + 1 < self.depth)
            for image, relation, own in zip(images, relations, attentions, strict=True):
                attention = self._fuse(
                    index, layer, image, text, position, relation, see_text, need_attentions
                )
                own.append(attention)
        return [
            Fused(
                image.paired_tokens().embeddings if need_image else None,
                text.paired_tokens().embeddings,
                own if need_attentions else None,
                relation,
            )
            for image, relation, own in zip(images, relations, attentions, strict=True)
        ]

    def _fuse(
        self,
        index: int,
        layer: FusionLayer,
        image: _Stream,
        text: _Stream,
        position: NoPosition,
        relation: Relation | None,
        see_text: bool,
        need_weights: bool,
    ) -> CrossAttentions:
        """One layer; changes both streams. ``see_text``: whether patches look at words."""
        for stream in (image, text) if self.both else (text,):
            bias = position.self_bias(index, stream.tokens)
            embeddings, mask = stream.tokens.embeddings, stream.tokens.attention_mask
            stream.update(layer.attend_self(embeddings, mask, bias))

        project = layer.cross_attention.project
        image_side = image.pair(project(image.tokens.embeddings, ask=see_text))
        text_side = text.pair(project(text.tokens.embeddings, answer=see_text))
        text_tokens, text_mask = text.paired_tokens(), text.paired_mask()

        seeing, text_to_image = layer.attend_cross(
            text_tokens.embeddings,
            text_side,
            image_side,
            image.paired_mask(),
            position.cross_terms(index, relation, 'text'),
            need_weights,
        )
        text.meet(text_tokens._replace(embeddings=seeing))
        image_to_text = None
        if see_text:
            image_tokens = image.paired_tokens()
            seen, image_to_text = layer.attend_cross(
                image_tokens.embeddings,
                image_side,
                text_side,
                text_mask,
                position.cross_terms(index, relation, 'image'),
                need_weights,
            )
            image.meet(image_tokens._replace(embeddings=seen))
        return CrossAttentions(text_to_image, image_to_text)
