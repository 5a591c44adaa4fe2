"""Preprocessing of pixels and texts."""

import torch
from torch import Tensor

from xmodal import functional as F
from xmodal.arguments import checked
from xmodal.models.base.preprocessor import CrossModalPreprocessor
from xmodal.models.base.tokenizer import build_tokenizer, piece_names, tokenize, unknown_words
from xmodal.registry import MODELS


@MODELS.register_module()
class ImageTextPreprocessor(CrossModalPreprocessor):
    """Stacks and normalises images and tokenises texts.

    Args:
        mean: of the RGB channels, in 0…255.
        std: of the RGB channels, in 0…255.
        tokenizer: arguments of :func:`xmodal.models.base.tokenizer.build_tokenizer`.
        max_length: longest text in word pieces, special ones included; longer ones are cut.

    Attributes:
        mask_id: id of [MASK].
        special_ids: ids of the special word pieces, (S,) int64.
    """

    def __init__(
        self, mean: list[float], std: list[float], tokenizer: dict, max_length: int = 30
    ) -> None:
        super().__init__(max_length)
        self.register_buffer('mean', torch.tensor(mean).view(3, 1, 1), persistent=False)
        self.register_buffer('std', torch.tensor(std).view(3, 1, 1), persistent=False)
        given = checked(build_tokenizer, tokenizer, 'data_preprocessor.tokenizer')
        self.tokenizer = build_tokenizer(**given)
        self.vocab_size = len(self.tokenizer)
        self.mask_id = self.tokenizer.mask_token_id
        special_ids = torch.tensor(self.tokenizer.all_special_ids)
        self.register_buffer('special_ids', special_ids, persistent=False)

    def prepare_images(self, inputs: Tensor) -> Tensor:
        """Normalised images; K images a sample, (B, K, 3, H, W), become consecutive rows."""
        return self.normalize(self._move(inputs.flatten(0, -4)))

    def normalize(self, images: Tensor) -> Tensor:
        """uint8 pixels (B, 3, H, W) to zero mean and unit deviation."""
        if F.is_exporting():  # ONNX cannot write planes of a batch of any size
            return (images.to(torch.float32) - self.mean) / self.std
        # Channel by channel: bytes of interleaved channels are read with large strides otherwise.
        planes = torch.empty(images.shape, dtype=torch.float32, device=images.device)
        for channel, plane in zip(images.unbind(1), planes.unbind(1), strict=True):
            plane.copy_(channel)
        return planes.sub_(self.mean).div_(self.std)

    def tokenize(self, texts: list[str]) -> tuple[Tensor, Tensor]:
        """Texts to ``input_ids`` int64 and ``attention_mask`` bool, both (T, N)."""
        input_ids, mask = tokenize(self.tokenizer, texts, self.max_length)
        self._warn_of_unknown_words(texts, input_ids)
        return self._move(input_ids), self._move(mask)

    def words(self, input_ids: Tensor) -> list[str]:
        """The word pieces of ids (L,)."""
        return piece_names(self.tokenizer, input_ids.tolist())

    def unknown_words(self, texts: list[str], input_ids: Tensor) -> list[str]:
        """The words of texts that the tokenizer does not know, in their order."""
        return unknown_words(self.tokenizer, texts, input_ids)
