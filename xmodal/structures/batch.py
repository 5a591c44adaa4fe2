"""A batch of images and texts on the model's device, and which of them belong together."""

from typing import NamedTuple

import torch
from mmengine.dist import all_gather
from torch import Tensor

from xmodal.structures.tokens import Regions


class Identities(NamedTuple):
    """Which image and which text each pair consists of.

    Attributes:
        image_ids: equal for equal images, (B,) int64.
        text_ids: equal for equal texts, (B,) int64.
    """

    image_ids: Tensor
    text_ids: Tensor

    def positives(self, others: 'Identities | None' = None) -> Tensor:
        """Pairs that share the image or the text: positives of each other, never negatives.

        Args:
            others: K pairs to compare with; None for the pairs themselves.

        Returns:
            (B, K) bool.
        """
        image_ids, text_ids = others or self
        return (self.image_ids[:, None] == image_ids) | (self.text_ids[:, None] == text_ids)

    def gather(self) -> 'Identities':
        """The identities of all ranks, rank after rank; all ranks have batches of one size."""
        return Identities(*(torch.cat(all_gather(ids.contiguous())) for ids in self))


class ImageTextBatch(NamedTuple):
    """Images and texts of one batch.

    In training there is one text an image (T = B); in test mode an image brings all its texts.

    Attributes:
        images: normalised pixels, (B, 3, H, W), or the regions of B images.
        input_ids: words or word pieces, (T, N).
        attention_mask: True for words, False for padding, (T, N) bool.
        image_ids: equal for equal images, (B,) int64.
        text_ids: equal for equal texts, (T,) int64.
        text_image_ids: id of the image that each text belongs to, (T,) int64.
    """

    images: Tensor | Regions
    input_ids: Tensor
    attention_mask: Tensor
    image_ids: Tensor
    text_ids: Tensor
    text_image_ids: Tensor

    @property
    def identities(self) -> Identities:
        """Of the pairs of a training batch."""
        return Identities(self.image_ids, self.text_ids)

    @property
    def texts_of_images(self) -> Tensor:
        """Texts that belong to each image, (B, T) bool."""
        return self.image_ids[:, None] == self.text_image_ids
