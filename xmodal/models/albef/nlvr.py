"""Reasoning over several images and a text: NLVR2."""

import torch
from torch import Tensor

from xmodal.models.albef.backbone import AlbefBackbone
from xmodal.models.albef.classifier import AlbefClassifier
from xmodal.registry import MODELS
from xmodal.structures import Tokens


@MODELS.register_module()
class AlbefNLVR(AlbefClassifier):
    """A class for each text with its K images; K follows from the batch.

    Every fusion layer passes over all images, with shared weights; each image relates to the words
    by its P. See :meth:`xmodal.models.fusion.FusionEncoder.fuse_images`.
    """

    def fuse(self, backbone: AlbefBackbone, images: Tokens, text: Tokens) -> Tensor:
        """The words after fusion, (B, 1 + N, D); ``images`` has B · K rows, grouped by text."""
        rows = torch.arange(len(images.embeddings), device=images.embeddings.device)
        images_of_text = [
            images.select(column) for column in rows.view(len(text.embeddings), -1).unbind(1)
        ]
        return backbone.fuse_images(images_of_text, text, need_image=False)[-1].text_tokens
