"""Frozen teachers: image models that are not trained."""

import timm
import torch
from torch import Tensor, nn

from xmodal.models.backbones.timm_weights import read_timm_weights
from xmodal.registry import MODELS


@MODELS.register_module()
class TimmTeacher(nn.Module):
    """Any model of ``timm``: its [CLS], or its pooled features where it has none.

    Args:
        arch: name in timm.
        pretrained: True for timm's weights, a file of them, or a source of one
            (:mod:`xmodal.weights`); False for random ones (tests).
        **overrides: passed to timm. For a [CLS] out of the last norm: ``global_pool='token'``.

    Shape:
        (B, 3, H, W) to (B, T).
    """

    def __init__(self, arch: str, pretrained: bool | str = True, **overrides) -> None:
        super().__init__()
        self.arch, self.pretrained, self.overrides = arch, pretrained, overrides
        self.model = timm.create_model(arch, num_classes=0, **overrides)

    @property
    def embed_dims(self) -> int:
        """T."""
        return getattr(self.model, 'head_hidden_size', self.model.num_features)

    def init_weights(self) -> None:
        """Reads the weights.

        Raises:
            FileNotFoundError: when they can be neither read nor downloaded.
            ValueError: when a file lacks some of the model's weights.
        """
        if self.pretrained:
            weights = read_timm_weights(
                self.arch, self.pretrained, 'teacher.pretrained', num_classes=0, **self.overrides
            )
            self.model.load_state_dict(weights)

    def forward(self, images: Tensor) -> Tensor:
        """The embedding of each image."""
        return self.model.forward_head(self.model.forward_features(images), pre_logits=True)


@MODELS.register_module()
class EncoderTeacher(nn.Module):
    """An image encoder of this package as a teacher: the mean of its patches.

    :class:`xmodal.models.MultiLabelClassifier` does not train the [CLS] of an encoder.

    Args:
        encoder: config of an image encoder.

    Shape:
        (B, 3, H, W) to (B, T).
    """

    def __init__(self, encoder: dict) -> None:
        super().__init__()
        self.encoder = MODELS.build(encoder)

    @property
    def embed_dims(self) -> int:
        """T."""
        return self.encoder.embed_dims

    def init_weights(self) -> None:
        """Reads the encoder's weights."""
        self.encoder.init_weights()

    def forward(self, images: Tensor) -> Tensor:
        """The embedding of each image."""
        return self.encoder(images).embeddings[:, 1:].mean(1)


class FrozenTeacher(nn.Module):
    """A teacher that is not trained, is always in eval mode, and is in no checkpoint.

    Its weights are loaded from their source whenever training starts or resumes.

    Args:
        teacher: config of a model from images (B, 3, H, W) to embeddings (B, T).
    """

    def __init__(self, teacher: dict) -> None:
        super().__init__()
        self.model = MODELS.build(teacher).requires_grad_(False)
        self.model.eval()
        self.register_load_state_dict_pre_hook(_add_current_weights)

    @property
    def embed_dims(self) -> int:
        """T."""
        return self.model.embed_dims

    def train(self, mode: bool = True) -> 'FrozenTeacher':
        """Stays in eval mode: training loops set the whole model to train mode every epoch."""
        return super().train(False)

    def state_dict(self, *args, destination: dict | None = None, **kwargs) -> dict:
        """Nothing."""
        return {} if destination is None else destination

    def init_weights(self) -> None:
        """Reads the weights."""
        self.model.init_weights()

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:
        """The embedding of each image, outside the graph."""
        return self.model(images)


def _add_current_weights(
    frozen: FrozenTeacher, state_dict: dict[str, Tensor], prefix: str, *_
) -> None:
    """Adds the teacher's weights, which no checkpoint has, so that strict loading passes."""
    state_dict |= {f'{prefix}model.{name}': x for name, x in frozen.model.state_dict().items()}
