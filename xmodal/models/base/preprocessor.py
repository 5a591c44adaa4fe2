"""From data samples to the tensors of a batch: what pixels and regions have in common."""

from abc import ABC, abstractmethod
from hashlib import blake2b

import torch
from mmengine.model import BaseDataPreprocessor
from torch import Tensor

from xmodal.structures import DataSample, ImageTextBatch, Regions


class CrossModalPreprocessor(BaseDataPreprocessor, ABC):
    """Prepares images, tokenises texts and numbers both by their identity.

    A subclass says how images are prepared and texts are tokenised.

    Args:
        max_length: longest text, special words included; longer ones are cut.

    Attributes:
        vocab_size: number of words, or of word pieces.
    """

    vocab_size: int

    def __init__(self, max_length: int | None) -> None:
        super().__init__(non_blocking=True)
        self.max_length = max_length

    @abstractmethod
    def prepare_images(self, inputs: Tensor | Regions) -> Tensor | Regions:
        """What the data loader collates, as the model takes it and on its device."""

    @abstractmethod
    def tokenize(self, texts: list[str]) -> tuple[Tensor, Tensor]:
        """Texts to ``input_ids`` int64 and ``attention_mask`` bool, both (T, N)."""

    def forward(self, data: dict, training: bool = False) -> dict:
        """Turns ``dict(inputs, data_samples)`` into a model's arguments.

        In test mode a sample's text is a list: the captions of all images are consecutive rows of
        the texts, and ``text_image_ids`` names their images.
        """
        samples: list[DataSample] = data['data_samples']
        captions = [[s.text] if isinstance(s.text, str) else s.text for s in samples]
        texts = [text for of_image in captions for text in of_image]
        text_image_ids = [
            sample.image_id
            for sample, of_image in zip(samples, captions, strict=True)
            for _ in of_image
        ]
        input_ids, attention_mask = self.tokenize(texts)
        batch = ImageTextBatch(
            images=self.prepare_images(data['inputs']),
            input_ids=input_ids,
            attention_mask=attention_mask,
            image_ids=self._ids([sample.image_id for sample in samples]),
            text_ids=self._ids([text_identity(text) for text in texts]),
            text_image_ids=self._ids(text_image_ids),
        )
        return {'inputs': batch, 'data_samples': samples}

    def _move(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, non_blocking=True)

    def _ids(self, ids: list[int]) -> Tensor:
        return self._move(torch.tensor(ids, dtype=torch.int64))


def text_identity(text: str) -> int:
    """A stable 63-bit number of a caption, equal for equal captions in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), 'big') >> 1
