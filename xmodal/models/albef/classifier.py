"""Classification of images with text: visual entailment."""

import torch
from torch import Tensor, nn

from xmodal.models.albef.backbone import AlbefBackbone
from xmodal.models.albef.model import AlbefModel
from xmodal.models.base import ClassifierMixin
from xmodal.registry import MODELS
from xmodal.structures import DataSample, ImageTextBatch, Tokens


@MODELS.register_module()
class AlbefClassifier(ClassifierMixin, AlbefModel):
    """The pre-trained backbone, and a class for each image with its text.

    encode → relate → fuse → classify. A momentum teacher of backbone and head gives soft targets.

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`AlbefBackbone`.
        head: config of the head, without its width.
        momentum: m of the momentum teacher; None for no teacher.
    """

    def __init__(
        self, data_preprocessor: dict, backbone: dict, head: dict, momentum: float | None = 0.995
    ) -> None:
        super().__init__(data_preprocessor, backbone)
        head = MODELS.build({**head, 'embed_dims': self.backbone.fusion.embed_dims})
        self.heads = nn.ModuleDict({'classification': head})
        self.make_teacher(momentum)

    def momentum_modules(self) -> dict[str, str]:
        """The backbone and the head."""
        return {**super().momentum_modules(), 'classification': 'heads.classification'}

    def soft_targets(self, batch: ImageTextBatch) -> tuple[Tensor, float] | tuple[()]:
        """The momentum teacher's logits (B, C), and α."""
        if not self.distillation_weight:
            return ()
        with torch.no_grad():
            return self._classify(self.teacher.module, batch), self.distillation_weight

    def tensor(self, batch: ImageTextBatch, samples: list[DataSample] | None = None) -> Tensor:
        """Logits (B, C)."""
        return self._classify(self.online_modules(), batch)

    def fuse(self, backbone: AlbefBackbone, images: Tokens, text: Tokens) -> Tensor:
        """The words after fusion, (B, 1 + N, D); ``images`` has B rows."""
        return backbone.fuse(images, text, need_image=False).text_tokens

    def _classify(self, modules: nn.ModuleDict, batch: ImageTextBatch) -> Tensor:
        """Logits (B, C) of the online modules or the teacher's."""
        backbone = modules['backbone']
        images = backbone.encode_image(batch.images).tokens
        text = backbone.encode_text(batch.input_ids, batch.attention_mask).tokens
        return modules['classification'](self.fuse(backbone, images, text))
