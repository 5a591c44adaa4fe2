"""The feature map of any image model of ``timm``."""

from collections.abc import Sequence

import timm
import torch
from mmengine.logging import print_log
from torch import Tensor, nn

from xmodal.models.backbones.image import resample_position
from xmodal.models.backbones.timm_weights import read_timm_weights
from xmodal.registry import MODELS
from xmodal.structures import Regions

_KEY = 'pretrained'


class TimmGrid(nn.Module):
    """A model of ``timm`` without its classifier: images to a grid of features.

    CNNs, ConvNeXts, hybrids and ViTs, the image towers of CLIP, SigLIP and DINOv2 among them.
    Prefix tokens of a ViT, such as its class token, are left out.

    Args:
        arch: name in timm.
        image_size: height and width of the images, in pixels.
        stage: index of the stage of timm's ``feature_info`` that the features come from; None for
            what the classifier gets.
        pretrained: True for timm's weights, a file of them, or a source of one
            (:mod:`xmodal.weights`). They are read by ``init_weights``.
        **overrides: passed to timm.

    Attributes:
        feature_dims: F, width of the features.
        summary_dims: S, width of the summary.
        pixel_mean, pixel_std: of the RGB channels, in 0…255, (3, 1, 1), as the weights expect.

    Shape:
        (B, 3, H, W) normalised pixels to (B, M, F), row after row.

    Raises:
        ValueError: when timm has no such model, the model no such stage, or its last features are
            no grid.
    """

    def __init__(
        self,
        arch: str,
        image_size: int,
        stage: int | None = None,
        pretrained: bool | str = False,
        **overrides,
    ) -> None:
        super().__init__()
        if not timm.is_model(arch):
            raise ValueError(
                f"arch='{arch}' is no model of timm {timm.__version__}: see timm.list_models()"
            )
        self.arch, self.image_size, self.stage = arch, image_size, stage
        self.pretrained, self.overrides = pretrained, overrides
        expected = timm.get_pretrained_cfg(arch)
        if expected.fixed_input_size and expected.input_size[-1] != image_size:
            overrides.setdefault('img_size', image_size)
        self.model = timm.create_model(arch, num_classes=0, **overrides)
        stages = list(self.model.feature_info)
        if stage is not None and not -len(stages) <= stage < len(stages):
            raise ValueError(
                f"stage={stage}, and '{arch}' has {len(stages)} stages: 0 to {len(stages) - 1}"
            )
        if stage is None and _hides_class_tokens(self.model):
            raise ValueError(
                f"the features of '{arch}' have class tokens whose number timm does not tell, or "
                'are of several grids: choose a stage, such as stage=-1'
            )
        width = self.model.num_features if stage is None else stages[stage]['num_chs']
        self.feature_dims = width
        has_head = stage is None
        self.summary_dims = getattr(self.model, 'head_hidden_size', width) if has_head else width
        for name in ('mean', 'std'):
            value = torch.tensor(getattr(expected, name)).view(3, 1, 1) * 255
            self.register_buffer(f'pixel_{name}', value, persistent=False)

    def init_weights(self) -> None:
        """Loads the pretrained weights, if any are asked for.

        Raises:
            FileNotFoundError: when they can be neither read nor downloaded.
            ValueError: when they are of another architecture.
        """
        if not self.pretrained:
            return
        weights = self._whole_weights()
        known = self.model.state_dict()
        name = 'pos_embed'  # of a ViT, which another size of images does not fit
        if name in known and weights[name].shape != known[name].shape:
            weights[name] = resample_position(weights[name], self.model)
        self.model.load_state_dict({name: weights[name] for name in known})
        print_log(
            f"{_KEY}={self.pretrained!r}: loaded {len(known)} tensors of '{self.arch}'", 'current'
        )

    def class_weights(self) -> Tensor:
        """The vectors of the classes that the pretrained weights tell apart, (C, F).

        Raises:
            FileNotFoundError: when the weights can be neither read nor downloaded.
            ValueError: when there are none, they are of another architecture, or the features are
                not what the classifier gets.
        """
        name = f'{self.model.default_cfg["classifier"]}.weight'
        weights = self._whole_weights() if self.pretrained else {}
        shape = tuple(weights[name].shape) if name in weights else None
        if shape is None or self.stage is not None or shape[1:] != (self.feature_dims,):
            raise ValueError(
                f"'{self.arch}', {_KEY}={self.pretrained!r}, stage={self.stage}: no linear layer "
                f'from {self.feature_dims} features to classes, found {shape}: name a '
                "pretrained CNN, such as 'tf_efficientnet_lite0', with stage=None"
            )
        return weights[name]

    def _whole_weights(self) -> dict[str, Tensor]:
        """The pretrained weights under timm's names, the classifier's among them."""
        overrides = self.overrides
        if isinstance(self.pretrained, str):  # of the size that the architecture has by default
            overrides = {name: x for name, x in overrides.items() if name != 'img_size'}
        return read_timm_weights(self.arch, self.pretrained, _KEY, **overrides)

    def normalize(self, images: Tensor) -> Tensor:
        """uint8 pixels (B, 3, H, W) as the weights expect them."""
        return (images.float() - self.pixel_mean) / self.pixel_std

    def forward(self, images: Tensor) -> Tensor:
        """The features of each cell."""
        return self._cells(self._features(images))

    def encode(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The features of each cell, and the summary of each image, (B, S)."""
        features = self._features(images)
        cells = self._cells(features)
        if self.stage is None:
            return cells, self.model.forward_head(features, pre_logits=True)
        return cells, cells.mean(1)

    def _features(self, images: Tensor) -> Tensor:
        if self.stage is None:
            return self.model.forward_features(images)
        (features,) = self.model.forward_intermediates(
            images, indices=[self.stage], intermediates_only=True, stop_early=True
        )
        return features

    def _cells(self, features: Tensor) -> Tensor:
        if features.ndim == 3:  # tokens
            return features[:, getattr(self.model, 'num_prefix_tokens', 0) :]
        if features.shape[1] == self.feature_dims:  # (B, F, h, w), else channels last
            features = features.movedim(1, -1)
        return features.flatten(1, 2)


def _hides_class_tokens(model: nn.Module) -> bool:
    """Whether a model does not tell its class tokens from cells (VOLO, CoaT, CrossViT, PiT)."""
    names = (name for name, _ in model.named_parameters())
    return not hasattr(model, 'num_prefix_tokens') and any('cls_token' in name for name in names)


@MODELS.register_module()
class GridExtractor(TimmGrid):
    """Grid features of photographs in place of a detector's regions (Jiang et al., CVPR 2020).

    It is frozen, and in eval mode. Each cell of the grid is a region, with the cell as its box.

    Args:
        arch: see :class:`TimmGrid`, as the other arguments.
        pretrained: the same, without a default; False for random weights (tests).

    Shape:
        images: uint8 (B, 3, H, W) of ``image_size``. Returns features (B, M, F) and boxes (M, 4),
        x1, y1, x2, y2 as shares of the image, row after row.
    """

    def __init__(self, arch: str, image_size: int, pretrained: bool | str, **grid) -> None:
        super().__init__(arch, image_size, pretrained=pretrained, **grid)
        self.requires_grad_(False).eval()
        self.init_weights()
        self.to(memory_format=torch.channels_last)  # half the time of a CNN on a CPU

    @torch.inference_mode()
    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The features of B images, and the boxes that all of them have."""
        features = super().forward(self.normalize(images))
        return features, cell_boxes(features.shape[1]).to(features)

    def extract(self, images: Sequence[Tensor], image_ids: Sequence[str]) -> list[Regions]:
        """The regions of each image, uint8 (3, H, W) of ``image_size``."""
        features, boxes = self(torch.stack(list(images)))
        mask = torch.ones(len(boxes), dtype=torch.bool, device=boxes.device)
        return [Regions(rows, mask, boxes) for rows in features]


def cell_boxes(count: int) -> Tensor:
    """The boxes of a square grid of ``count`` cells, (count, 4)."""
    side = round(count**0.5)
    edges = torch.arange(side) / side
    top, left = (x.flatten() for x in torch.meshgrid(edges, edges, indexing='ij'))
    return torch.stack([left, top, left + 1 / side, top + 1 / side], 1)
