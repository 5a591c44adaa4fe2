"""Reasoning over several images and a text: LXMERT on NLVR2."""

import torch
from torch import Tensor

from xmodal.models.lxmert.backbone import LxmertModel
from xmodal.registry import MODELS
from xmodal.structures import DataSample, RegionTextBatch


@MODELS.register_module()
class LxmertNLVR(LxmertModel):
    """A class for each text with its images, each of which is fused with the text alone.

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`LxmertBackbone`.
        head: config of a head over the cross-modality outputs of all images of a text, without its
            width.
    """

    def __init__(self, data_preprocessor: dict, backbone: dict, head: dict) -> None:
        super().__init__(data_preprocessor, backbone, {'classification': head})

    def loss(self, batch: RegionTextBatch, samples: list[DataSample]) -> dict[str, Tensor]:
        """``loss_classification`` and the accuracy on the batch; samples have a ``label``."""
        logits = self.tensor(batch)
        labels = torch.tensor([sample.label for sample in samples], device=logits.device)
        return self.heads['classification'].loss(logits, labels, None, 0.0)

    def predict(self, batch: RegionTextBatch, samples: list[DataSample]) -> list[DataSample]:
        """Sets ``probabilities`` (C,) and ``predicted``, the class."""
        return self.heads['classification'].predict(self.tensor(batch), samples)

    def tensor(self, batch: RegionTextBatch, samples: list[DataSample] | None = None) -> Tensor:
        """Logits (B, C) of B texts with B · K images, a text's images together.

        Raises:
            ValueError: when the batch has another number of images.
        """
        head, texts = self.heads['classification'], len(batch.input_ids)
        images = len(batch.regions.features)
        if images != texts * head.images:
            raise ValueError(
                f'{images} images for {texts} texts, but head.images={head.images}: each text '
                'needs as many, one after another'
            )
        rows = torch.arange(texts, device=batch.input_ids.device)
        text = self.backbone.encode_text(batch.input_ids, batch.attention_mask)
        fused = self.backbone.fuse(
            self.backbone.encode_image(batch.regions),
            text.select(rows.repeat_interleave(head.images)),
            need_image=False,
        )
        return head(self.backbone.pool(fused))
