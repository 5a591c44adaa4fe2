"""Reasoning over several images and a text: LXMERT on NLVR2."""

import torch
from torch import Tensor, nn

from xmodal.models.base import ClassifierMixin
from xmodal.models.lxmert.model import LxmertModel
from xmodal.registry import MODELS
from xmodal.structures import DataSample, ImageTextBatch


@MODELS.register_module()
class LxmertNLVR(ClassifierMixin, LxmertModel):
    """A class for each text with its images, each of which is fused with the text alone.

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`LxmertBackbone`.
        head: config of a head over the cross-modality outputs of all images of a text, without its
            width.
    """

    def __init__(self, data_preprocessor: dict, backbone: dict, head: dict) -> None:
        super().__init__(data_preprocessor, backbone)
        head = MODELS.build({**head, 'embed_dims': self.backbone.embed_dims})
        self.set_heads(nn.ModuleDict({'classification': head}))

    def tensor(self, batch: ImageTextBatch, samples: list[DataSample] | None = None) -> Tensor:
        """Logits (B, C) of B texts with B · K images, grouped by text.

        Raises:
            ValueError: when the batch has another number of images.
        """
        head, num_texts = self.heads['classification'], len(batch.input_ids)
        num_images = len(batch.images.features)
        if num_images != num_texts * head.images:
            raise ValueError(
                f'{num_images} images for {num_texts} texts, but head.images={head.images}: each '
                'text needs as many, grouped by text'
            )
        rows = torch.arange(num_texts, device=batch.input_ids.device)
        text = self.backbone.encode_text(batch.input_ids, batch.attention_mask)
        fused = self.backbone.fuse(
            self.backbone.encode_image(batch.images),
            text.select(rows.repeat_interleave(head.images)),
            need_image=False,
        )
        return head(self.backbone.pool(fused))
