"""Preprocessing of pixels."""

import torch
from torch import Tensor

from xmodal import functional as F
from xmodal.models.base.preprocessor import CrossModalPreprocessor
from xmodal.registry import MODELS


@MODELS.register_module()
class ImageTextPreprocessor(CrossModalPreprocessor):
    """Stacks and normalises images and tokenises texts.

    Args:
        mean: of the RGB channels, in 0…255.
        std: of the RGB channels, in 0…255.
        tokenizer: arguments of :func:`xmodal.models.base.tokenizer.build_tokenizer`.
        max_length: longest text in word pieces, special ones included; longer ones are cut.
    """

    def __init__(
        self, mean: list[float], std: list[float], tokenizer: dict, max_length: int = 30
    ) -> None:
        super().__init__(max_length, tokenizer)
        self.register_buffer('mean', torch.tensor(mean).view(3, 1, 1), persistent=False)
        self.register_buffer('std', torch.tensor(std).view(3, 1, 1), persistent=False)

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
