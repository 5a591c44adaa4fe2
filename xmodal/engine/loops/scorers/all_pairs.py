"""Scores of all pairs by the similarity of a matching model."""

from collections.abc import Collection

import torch
from torch import Tensor, nn

from xmodal.engine.loops.encoded_gallery import EncodedGallery
from xmodal.engine.loops.scorers.base import Scorer
from xmodal.errors import ConfigError
from xmodal.evaluation.retrieval import Gallery
from xmodal.registry import TASK_UTILS
from xmodal.structures import DataSample, ImageTextBatch, PackedTexts


@TASK_UTILS.register_module()
class AllPairsScorer(Scorer):
    """Scores all pairs with ``model.score_all_pairs``, as for SAF, SGR and dual encoders.

    The ranks share the encoding and the scoring. Ranking is by logits in float32: the probabilities
    of good pairs round to 1 and tie.

    Args:
        dtype: of the large products, 'float16' or 'bfloat16'; None for float32.
        compile: compile the scoring of a tile (on GPUs).

    Raises:
        ValueError: for another dtype.
    """

    gathers_image_tokens = True

    def __init__(self, dtype: str | None = None, compile: bool = False) -> None:
        if dtype not in (None, 'float16', 'bfloat16'):
            raise ValueError(f"scorer.dtype='{dtype}', expected 'float16', 'bfloat16' or None")
        self.options = {'dtype': dtype and getattr(torch, dtype), 'compile': compile}

    def check_model(self, model: nn.Module) -> None:
        """Refuses a model that compares embeddings."""
        if not hasattr(model, 'score_all_pairs'):
            raise ConfigError(
                f'{type(self).__name__} compares images and texts by the similarity of an '
                f'ImageTextMatcher, and {type(model).__name__} has none: take '
                "scorer=dict(type='ITMReranker'), which compares embeddings"
            )

    def encode(
        self, model: nn.Module, inputs: ImageTextBatch, data_samples: list[DataSample]
    ) -> EncodedGallery:
        """Keeps the tokens of images and texts, on the model's device."""
        images = model.encode_image(inputs.images)
        texts = model.encode_text(inputs.input_ids, inputs.attention_mask)
        words = PackedTexts.from_padded(texts.embeddings, texts.full_mask())
        names = [sample.get('image_name', sample.image_path) for sample in data_samples]
        return EncodedGallery.from_samples(data_samples, names, images, words)

    def score(
        self, model: nn.Module, encoded: EncodedGallery, folds: Collection[int] = (1,)
    ) -> Gallery:
        """The logits of all pairs; the folds change nothing."""
        logits = model.score_all_pairs(
            encoded.image_tokens, encoded.texts, progress=True, **self.options
        )
        return Gallery(logits, encoded.text_to_image)

    def saved_scores(self, model: nn.Module, scores: Tensor) -> Tensor:
        """The similarity's scores in float64, such as SGRAF's sigmoids."""
        return model.similarity.to_scores(scores.double())
