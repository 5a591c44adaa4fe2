"""The fusion encoder: words and patches look at each other."""

import torch
from torch import Tensor, nn

from xmodal.models.fusion.layer import FusionLayer, LayerNeeds
from xmodal.models.fusion.pretrained import load_bert_layers
from xmodal.models.fusion.stream import Stream
from xmodal.models.layers import init_linear
from xmodal.models.necks.position import NoPosition, embed_inputs, relate
from xmodal.registry import MODELS
from xmodal.structures import CrossAttentions, Fused, Tokens


@MODELS.register_module()
class FusionEncoder(nn.Module):
    """Layers of self-attention, cross-attention and feed-forward over two streams.

    ``streams='both'``: words look at patches and patches at words, with one set of weights, and
    cross-attention has no output projection (ACE-RPE; this gives its 53.3M parameters).
    ``streams='text'``: only words look, at the image encoder's tokens, with an output projection
    (ALBEF).

    Args:
        depth: number of layers.
        embed_dims: D.
        num_heads: heads of each attention.
        feedforward_dims: width of the feed-forward blocks; None for 4 D.
        dropout: probability, as BERT's.
        streams: 'both' or 'text'.
        pretrained: a BERT whose layers are the start of self-attention and feed-forward, a hub name
            or a directory with weights. They are read when training starts (``init_weights``).
        first_layer: the first of these layers, counted from 0; those before it are the text
            encoder.
        share_two_images: whether the two images of a text pass the same layers. False gives each
            image its copy of every layer, in turn; the two copies share only key and value of the
            cross-attention (ALBEF's models/model_nlvr.py).
        coordinates: whether image tokens enter the layers with their coordinates (y, x), through a
            linear layer, as convolutions see them in CoordConv (Liu et al., NeurIPS 2018). What
            relates words and patches is of the tokens without them.

    Attributes:
        layer_type: class of the layers; a fusion encoder with another layer overrides this.
    """

    layer_type: type[FusionLayer] = FusionLayer

    def __init__(
        self,
        depth: int = 6,
        embed_dims: int = 768,
        num_heads: int = 12,
        feedforward_dims: int | None = None,
        dropout: float = 0.1,
        streams: str = 'both',
        pretrained: str | None = None,
        first_layer: int = 6,
        share_two_images: bool = True,
        coordinates: bool = False,
    ) -> None:
        super().__init__()
        if streams not in ('both', 'text'):
            raise ValueError(f"fusion.streams='{streams}', expected 'both' or 'text'")
        self.depth, self.embed_dims, self.num_heads = depth, embed_dims, num_heads
        self.has_image_stream = streams == 'both'
        self.pretrained, self.first_layer = pretrained, first_layer
        self.copies = 1 if share_two_images else 2
        self.layer_options = dict(
            embed_dims=embed_dims,
            num_heads=num_heads,
            feedforward_dims=feedforward_dims or 4 * embed_dims,
            dropout=dropout,
            has_image_stream=self.has_image_stream,
        )
        self.layers = nn.ModuleList(
            self.layer_type(**self.layer_options) for _ in range(depth * self.copies)
        )
        if not share_two_images:
            for first, second in zip(self.layers[::2], self.layers[1::2], strict=True):
                second.cross_attention.k_proj = first.cross_attention.k_proj
                second.cross_attention.v_proj = first.cross_attention.v_proj
        init_linear(self, embed_dims)
        self.coordinates = None
        if coordinates:
            self.coordinates = nn.Linear(2, embed_dims, bias=False)
            nn.init.normal_(self.coordinates.weight, std=0.5)  # tokens have 1, after a layer norm

    def init_weights(self) -> None:
        """Loads layers of BERT, if any are asked for; see :func:`load_bert_layers`."""
        if self.pretrained is not None:
            for copy in range(self.copies):
                layers = self.layers[copy :: self.copies]
                load_bert_layers(layers, self.pretrained, self.first_layer)

    def forward(
        self,
        image: Tokens,
        text: Tokens,
        position: NoPosition,
        pairs: Tensor | None = None,
        need_image: bool = True,
        need_attentions: bool = False,
        gradients_from: int | None = None,
        words: Tensor | None = None,
    ) -> Fused:
        """Fuses pairs of an image and a text.

        Args:
            image: (B, 1 + M, D).
            text: (B, 1 + N, D).
            position: the position plug-in.
            pairs: rows of image and text to fuse, (P, 2) int64; None fuses row by row. What
                depends on an image or a text alone is computed once for all its pairs.
            need_image: whether to compute the image stream of the last layer.
            need_attentions: whether to return the cross-attention's probabilities.
            gradients_from: first layer that records gradients, as Grad-CAM wants it; None for what
                PyTorch's mode says.
            words: the words of each pair that are needed, (P, W) int64, where the image stream is
                not: the last layer computes these alone. None for all.

        Returns:
            Both streams with a row for each pair. ``image_tokens`` is None without ``need_image``;
            with ``streams='text'`` it is the input. ``text_tokens`` has the ``words`` alone.
        """
        image_rows, text_rows = (None, None) if pairs is None else pairs.unbind(1)
        image, text = embed_inputs(position, image, text)
        streams = [Stream(image, image_rows)], Stream(text, text_rows)
        return self._run(*streams, position, need_image, need_attentions, gradients_from, words)[0]

    def fuse_images(
        self, images: list[Tokens], text: Tokens, position: NoPosition, need_image: bool = True
    ) -> list[Fused]:
        """Fuses K images with a text, row by row.

        Every layer passes over the text K times, with the same weights (unless
        ``share_two_images=False``): once with each image, in order, each time from where the image
        before it left the words. An image relates to the words by a separate relation. K = 1 is
        :meth:`forward`.

        Args:
            images: K of them, (B, 1 + M, D) each.
            text: (B, 1 + N, D).
            position: the position plug-in, applied to each image with the text.
            need_image: whether to compute the image streams of the last layer.

        Returns:
            One result an image; all have the same words, which have seen all images.
        """
        embedded = [embed_inputs(position, image, text) for image in images]
        streams = [Stream(image) for image, _ in embedded], Stream(embedded[0][1])
        return self._run(*streams, position, need_image)

    def _run(
        self,
        images: list[Stream],
        text: Stream,
        position: NoPosition,
        need_image: bool,
        need_attentions: bool = False,
        gradients_from: int | None = None,
        words: Tensor | None = None,
    ) -> list[Fused]:
        """All layers over all images; a result an image.

        Raises:
            ValueError: when not two images come to layers that have a copy for each of two.
        """
        if self.copies == 2 and len(images) != 2:
            raise ValueError(
                f'fusion.share_two_images=False needs two images a text, found {len(images)}: it '
                'is for AlbefNLVR and TextAssignmentPretrainer'
            )
        relations = [
            relate(position, image.paired().tokens, text.paired().tokens) for image in images
        ]
        if self.coordinates is not None:
            images = [self._with_coordinates(image) for image in images]
        attentions: list[list[CrossAttentions]] = [[] for _ in images]
        record = torch.is_grad_enabled()
        for index in range(self.depth):
            if gradients_from is not None:
                record = index >= gradients_from
            if index == gradients_from:
                text = text.with_embeddings(text.tokens.embeddings.detach().requires_grad_())
            is_last = index + 1 == self.depth
            needs = LayerNeeds(
                self.has_image_stream and (need_image or not is_last),
                words if is_last else None,
                need_attentions,
            )
            for number, relation in enumerate(relations):
                layer = self.layers[index * self.copies + number % self.copies]
                with torch.set_grad_enabled(record):
                    images[number], text, weights = layer(
                        images[number], text, position, index, relation, needs
                    )
                attentions[number].append(weights)
        words_of_pairs = text.paired().tokens.embeddings
        return [
            Fused(
                image.paired().tokens.embeddings if need_image else None,
                words_of_pairs,
                of_image if need_attentions else None,
                relation,
            )
            for image, relation, of_image in zip(images, relations, attentions, strict=True)
        ]

    def _with_coordinates(self, image: Stream) -> Stream:
        """The patches with what their coordinates add to them; [CLS] gets nothing."""
        tokens = image.tokens
        added = self.coordinates(tokens.places().to(tokens.embeddings))
        return image.with_embeddings(tokens.embeddings + added)
