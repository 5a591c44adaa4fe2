"""Regions of images by given boxes, whose features are their pixels."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torchvision.ops import roi_align

from xmodal.models.backbones.given_boxes import GivenBoxes, labelled_regions
from xmodal.registry import MODELS
from xmodal.structures import Regions


@MODELS.register_module()
class CropExtractor(nn.Module):
    """The pixels of given boxes, resized to one size: for drawings, whose shapes are that simple.

    Pixels are scaled to -1…1; outside of the image they are 0, a medium grey.

    Args:
        boxes: COCO's ``instances_*.json`` whose boxes are the regions; the stem of ``file_name`` is
            the id of an image.
        size: S, height and width of a crop.
        margin: of a crop around its box, on each side, as a share of the box: it shows what the
            object touches.
    """

    image_size = None  # images keep their sizes

    def __init__(self, boxes: str, size: int = 8, margin: float = 0.25) -> None:
        super().__init__()
        self.given, self.size, self.margin = GivenBoxes(boxes), size, margin

    @torch.inference_mode()
    def extract(self, images: Sequence[Tensor], image_ids: Sequence[str]) -> list[Regions]:
        """The regions of each image, with features (R, 3 · S²).

        Args:
            images: uint8 (3, H, W), of any sizes.
            image_ids: of the images.

        Raises:
            ValueError: when an image has no given boxes.
        """
        return [self._regions(*pair) for pair in zip(images, image_ids, strict=True)]

    def _regions(self, image: Tensor, image_id: str) -> Regions:
        boxes, labels = self.given.of(image_id, image)
        height, width = image.shape[1:]
        corners = boxes * boxes.new_tensor([width, height] * 2)
        margin = self.margin * (corners[:, 2:] - corners[:, :2])
        windows = torch.cat([corners[:, :2] - margin, corners[:, 2:] + margin], 1)
        pixels = image[None].float() / 127.5 - 1
        crops = roi_align(pixels, [windows], self.size, sampling_ratio=2, aligned=True)
        return labelled_regions(crops.flatten(1), boxes, torch.ones_like(boxes[:, 0]), labels)
