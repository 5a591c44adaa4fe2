"""Regions of photographs by a detector of ``torchvision``."""

from collections.abc import Sequence

import torch
from mmengine.logging import print_log
from torch import Tensor, nn
from torchvision.models import detection as detectors
from torchvision.models import get_model, list_models

from xmodal.checkpoint_file import read_checkpoint
from xmodal.models.backbones.given_boxes import GivenBoxes, labelled_regions
from xmodal.registry import MODELS
from xmodal.structures import Regions
from xmodal.weights import find_weights

_NAMES = [name for name in list_models(module=detectors) if 'rcnn' in name]
_CLASSES = 'roi_heads.box_predictor.cls_score.bias'


@MODELS.register_module()
class DetectorExtractor(nn.Module):
    """The objects that a Faster, Mask or Keypoint R-CNN finds, or the boxes that are given.

    It is frozen, and in eval mode. The features of a box are those that its class is predicted
    from (Anderson et al., CVPR 2018): pooled anew from the final box, 1,024 of them. Labels are the
    classes and their scores; there are no attributes, whose confidences are 0. An image in which
    nothing is found has one region, the whole of it, of class 0 (background).

    Args:
        detector: name in torchvision, such as 'fasterrcnn_resnet50_fpn_v2'.
        pretrained: True for torchvision's weights, a file of them, or a source of one
            (:mod:`xmodal.weights`). The file says how many classes there are.
        max_regions: the best so many of an image.
        min_score: regions of a lower score are left out.
        boxes: COCO's ``instances_*.json`` whose boxes are the regions, in place of found ones; the
            stem of ``file_name`` is the id of an image.

    Raises:
        FileNotFoundError: when the weights can be neither read nor downloaded.
        ValueError: when there is no such detector, or no weights, or they are another detector's.
    """

    image_size = None  # the detector brings images to its size

    def __init__(
        self,
        detector: str,
        pretrained: bool | str,
        max_regions: int = 36,
        min_score: float = 0.2,
        boxes: str | None = None,
    ) -> None:
        super().__init__()
        if detector not in _NAMES:
            raise ValueError(
                f"extractor.detector='{detector}', expected one of torchvision's with boxes of "
                f'regions: {", ".join(_NAMES)}'
            )
        if not pretrained:
            raise ValueError(
                f"extractor.pretrained={pretrained!r}: the regions of '{detector}' without weights "
                'would be random; name a file of weights, or True to download them'
            )
        weights = _read_weights(detector, pretrained)
        self.model = get_model(
            detector,
            weights=None,
            weights_backbone=None,
            num_classes=len(weights[_CLASSES]) if _CLASSES in weights else 91,
            box_detections_per_img=max_regions,
            box_score_thresh=min_score,
        )
        _load(self.model, weights, detector, pretrained)
        self.requires_grad_(False).eval()
        self.given = None if boxes is None else GivenBoxes(boxes)

    def train(self, mode: bool = True) -> 'DetectorExtractor':
        """Stays in eval mode."""
        return super().train(False)

    @torch.inference_mode()
    def extract(self, images: Sequence[Tensor], image_ids: Sequence[str]) -> list[Regions]:
        """The regions of each image.

        Args:
            images: uint8 (3, H, W), of any sizes.
            image_ids: of the images.

        Raises:
            ValueError: when an image has no given boxes.
        """
        batch, _ = self.model.transform([image.float() / 255 for image in images])
        maps = self.model.backbone(batch.tensors)
        sizes = [(width, height) for height, width in batch.image_sizes]
        corners = [batch.tensors.new_tensor(size * 2) for size in sizes]
        if self.given is None:
            boxes, scores, labels = self._find(batch, maps, corners)
        else:
            shares = [self._given(*pair) for pair in zip(image_ids, images, strict=True)]
            boxes = [share[0] * corner for share, corner in zip(shares, corners, strict=True)]
            scores, labels = [share[1] for share in shares], [share[2] for share in shares]
        features = self._pool(maps, boxes, batch).split([len(box) for box in boxes])
        shares = [box / corner for box, corner in zip(boxes, corners, strict=True)]
        parts = zip(features, shares, scores, labels, strict=True)
        return [labelled_regions(*part) for part in parts]

    def _find(self, batch, maps, corners) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        heads = self.model.roi_heads
        proposals, _ = self.model.rpn(batch, maps)
        predicted = heads.box_predictor(self._pool(maps, proposals, batch))
        found = heads.postprocess_detections(*predicted, proposals, batch.image_sizes)
        boxes, scores, labels = map(list, found)
        for i, corner in enumerate(corners):
            if not len(boxes[i]):
                boxes[i] = corner[None] * corner.new_tensor([0, 0, 1, 1])
                scores[i], labels[i] = corner.new_zeros(1), labels[i].new_zeros(1)
        return boxes, scores, labels

    def _pool(self, maps, boxes: Sequence[Tensor], batch) -> Tensor:
        heads = self.model.roi_heads
        return heads.box_head(heads.box_roi_pool(maps, list(boxes), batch.image_sizes))

    def _given(self, image_id: str, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Boxes as shares of an image, scores of 1, and classes."""
        shares, labels = self.given.of(image_id, image)
        return shares, torch.ones_like(shares[:, 0]), labels


def _read_weights(detector: str, pretrained: bool | str) -> dict[str, Tensor]:
    key = f'extractor.pretrained={pretrained!r}'
    if isinstance(pretrained, str):
        content = read_checkpoint(find_weights(pretrained, 'extractor.pretrained'))
        return content.get('state_dict', content.get('model', content))
    try:
        return get_model(detector, weights='DEFAULT').state_dict()
    except Exception as error:  # the network raises many kinds
        raise FileNotFoundError(
            f"{key}: the weights of '{detector}' can't be downloaded: {error}\nName a file of them"
        ) from error


def _load(
    model: nn.Module, weights: dict[str, Tensor], detector: str, pretrained: bool | str
) -> None:
    known = model.state_dict()
    fitting = [n for n, x in known.items() if n in weights and weights[n].shape == x.shape]
    if len(fitting) < len(known):
        raise ValueError(
            f"extractor.pretrained={pretrained!r} has {len(weights)} tensors, and '{detector}' "
            f'{len(known)}: {len(fitting)} fit. They are of another detector: name the one they '
            'belong to'
        )
    model.load_state_dict({name: weights[name] for name in known})
    print_log(f"extractor.pretrained={pretrained!r}: loaded all of '{detector}'", 'current')
