"""Image-text matching: SAF and SGR, with T-EMDE in them, and dual encoders."""

from functools import partial

import torch
from torch import Tensor

from xmodal.models.backbones.encoder import build_encoder
from xmodal.models.base import CrossModalModel, check_vocabulary, encode
from xmodal.models.sgraf.all_pairs import score_all_pairs
from xmodal.models.sgraf.narrow import narrow, require_directions
from xmodal.models.sgraf.some_pairs import score_pairs
from xmodal.registry import MODELS
from xmodal.structures import DataSample, ImageTextBatch, PackedTexts, Regions, Tokens


@MODELS.register_module()
class ImageTextMatcher(CrossModalModel):
    """Two encoders and a similarity of their token sets: encode → compare.

    Args:
        data_preprocessor: config of the preprocessor.
        image_encoder: config of an encoder of regions.
        text_encoder: config of an encoder of words; ``vocab_size=None`` in it stands for the size
            of the preprocessor's vocabulary.
        similarity: config of the similarity, without its width.
        loss: config of a loss over the scores of all pairs of a batch, such as ``TripletLoss``.

    Raises:
        ValueError: when the encoders differ in width, or the text encoder and the vocabulary in
            size.
    """

    def __init__(
        self,
        data_preprocessor: dict,
        image_encoder: dict,
        text_encoder: dict,
        similarity: dict,
        loss: dict,
    ) -> None:
        super().__init__(data_preprocessor)
        text_encoder = self._with_vocabulary(text_encoder)
        self.image_encoder = build_encoder(image_encoder, 'model.image_encoder')
        self.text_encoder = build_encoder(text_encoder, 'model.text_encoder')
        check_vocabulary(self.data_preprocessor, self.text_encoder)
        widths = self.image_encoder.embed_dims, self.text_encoder.embed_dims
        kind = similarity.get('type')
        kind = MODELS.get(kind) if isinstance(kind, str) else kind
        if widths[0] != widths[1] and getattr(kind, 'compares_tokens', True):
            raise ValueError(
                f'image_encoder.embed_dims={widths[0]} and text_encoder.embed_dims={widths[1]}: '
                'regions and words are compared and must have one width'
            )
        embed_dims = widths[0] if widths[0] == widths[1] else widths
        self.similarity = MODELS.build({**similarity, 'embed_dims': embed_dims})
        self.loss_module = MODELS.build(loss)

    def loss(
        self, batch: ImageTextBatch, samples: list[DataSample] | None = None
    ) -> dict[str, Tensor]:
        """The losses of a batch with one caption an image."""
        positives = batch.texts_of_images
        needed = None
        if self.loss_module.chooses_pairs:
            needed = partial(self.loss_module.needed_pairs, positives=positives)
        images, texts = self._encode(batch)
        logits = self.similarity(images, texts, needed)
        if self.loss_module.takes_logits:
            return self.loss_module(logits, positives)
        scores = self.similarity.to_scores(logits).masked_fill(logits.isneginf(), -torch.inf)
        return self.loss_module(scores, positives)

    def tensor(self, batch: ImageTextBatch, samples: list[DataSample] | None = None) -> Tensor:
        """Logits of all images with all captions, (B, T)."""
        return self.similarity(*self._encode(batch))

    def encode_image(self, regions: Regions) -> Tokens:
        """Regions to tokens (B, R, D)."""
        return encode(self.image_encoder, None, 'image', regions)

    def encode_text(self, input_ids: Tensor, attention_mask: Tensor) -> Tokens:
        """(T, L) words to tokens (T, L, D)."""
        return encode(self.text_encoder, None, 'text', input_ids, attention_mask)

    def score_all_pairs(self, images: Tokens, texts: PackedTexts, **options) -> Tensor:
        """Logits of a whole test set, (I, T); see :func:`.all_pairs.score_all_pairs`."""
        return score_all_pairs(self.similarity, images, texts, **options)

    def score_roughly(self, images: Tokens, texts: PackedTexts, dim: int, **options) -> Tensor:
        """The same by a copy of the similarity with ``dim`` directions; see :func:`.narrow`."""
        return score_all_pairs(
            narrow(self.similarity, images, texts, dim), images, texts, **options
        )

    def require_directions(self, dim: int) -> None:
        """Raises ValueError where :meth:`score_roughly` can't take ``dim`` directions."""
        require_directions(self.similarity, dim)

    def score_pairs(self, images: Tokens, texts: PackedTexts, chosen: Tensor) -> Tensor:
        """Logits of the pairs of ``chosen``, (I, T) bool; see :func:`.some_pairs.score_pairs`."""
        return score_pairs(self.similarity, images, texts, chosen)

    def _with_vocabulary(self, text_encoder: dict) -> dict:
        """The encoder's config with the size of the preprocessor's vocabulary."""
        if 'vocab_size' not in text_encoder:
            return text_encoder
        given, vocab_size = text_encoder['vocab_size'], self.data_preprocessor.vocab_size
        if given not in (None, vocab_size):
            raise ValueError(
                f'text_encoder.vocab_size={given}, but the vocabulary of data_preprocessor has '
                f'{vocab_size} words: set it to None, or name the vocabulary that belongs to it'
            )
        return {**text_encoder, 'vocab_size': vocab_size}

    def _encode(self, batch: ImageTextBatch) -> tuple[Tokens, Tokens]:
        return (
            self.encode_image(batch.images),
            self.encode_text(batch.input_ids, batch.attention_mask),
        )
