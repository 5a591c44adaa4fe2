"""Reasoning over several images and a text: NLVR2, and the pre-training that prepares for it."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from xmodal.models.albef.backbone import AlbefBackbone
from xmodal.models.albef.classifier import AlbefClassifier
from xmodal.models.base.momentum_model import MomentumModel
from xmodal.models.heads.itm import sample_negatives
from xmodal.registry import MODELS
from xmodal.structures import DataSample, ImageTextBatch, Tokens


@MODELS.register_module()
class AlbefNLVR(AlbefClassifier):
    """A class for each text with its K images; K follows from the batch.

    Every fusion layer passes over all images, with shared weights; each image relates to the words
    by its own P. See :meth:`xmodal.models.fusion.FusionEncoder.fuse_several`.
    """

    def fuse(self, backbone: AlbefBackbone, images: Tokens, text: Tokens) -> Tensor:
        """The words after fusion, (B, 1 + N, D); ``images`` has B · K rows, a text's together."""
        rows = torch.arange(len(images.embeddings), device=images.embeddings.device)
        places = rows.view(len(text.embeddings), -1).unbind(1)
        several = [images.select(own) for own in places]
        return backbone.fuse_several(several, text, need_image=False)[-1].text_tokens


@MODELS.register_module()
class TextAssignmentPretrainer(MomentumModel):
    """Text assignment: which of two images is the text's, the first, the second or none (ALBEF).

    Prepares a fusion encoder for two images (``AlbefNLVR``) with image-text pairs alone:
    beside the text's own image stands one of the batch that resembles it, or two of these stand
    there. One linear layer on the fused [CLS].

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`AlbefBackbone`.
        temperature: other images are drawn with probability softmax(cosine / temperature).
    """

    def __init__(self, data_preprocessor: dict, backbone: dict, temperature: float = 0.07) -> None:
        super().__init__(data_preprocessor, backbone)
        self.temperature = temperature
        self.heads = nn.ModuleDict({'assignment': nn.Linear(self.backbone.fusion.embed_dims, 3)})

    def loss(
        self, batch: ImageTextBatch, samples: list[DataSample] | None = None
    ) -> dict[str, Tensor]:
        """``loss_assignment`` and ``assignment_accuracy``.

        Texts for which the batch has too few other images do not count.
        """
        images = self.backbone.encode_image(batch.images)
        text = self.backbone.encode_text(batch.input_ids, batch.attention_mask).tokens
        same = (batch.image_ids[:, None] == batch.image_ids) | (
            batch.text_ids[:, None] == batch.text_ids
        )
        pairs, labels, possible = self.draw(images.embedding.detach(), same)
        shown = [images.tokens.select(rows) for rows in pairs.unbind(1)]
        words = self.backbone.fuse_several(shown, text, need_image=False)[-1].text_tokens
        logits = self.heads['assignment'](words[:, 0]).float()
        losses = cross_entropy(logits, labels, reduction='none')
        correct = (logits.argmax(1) == labels).float()
        count = possible.sum().clamp(min=1)
        return {
            'loss_assignment': (losses * possible).sum() / count,
            'assignment_accuracy': (correct * possible).sum() / count,
        }

    def draw(self, vectors: Tensor, same: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Draws the images that each text is shown with, and the answer: each a third.

        Args:
            vectors: the images', (B, d).
            same: images that are the text's as well, (B, B) bool; never drawn as others.

        Returns:
            Rows of the first and second image (B, 2), labels (B,), 0 first, 1 second, 2 none, and
            (B,) bool: False where the batch has too few other images.
        """
        logits = vectors.float() @ vectors.float().T / self.temperature
        own = torch.arange(len(vectors), device=vectors.device)
        other, possible = sample_negatives(logits, same)
        drawn = one_hot(other, len(vectors)).bool()
        another, has_another = sample_negatives(logits, same | drawn)
        labels = torch.randint(3, own.shape, device=own.device)
        choices = torch.stack([own, other, another], 1)
        places = torch.tensor([[0, 1], [1, 0], [1, 2]], device=own.device)
        pairs = choices.gather(1, places[labels])
        return pairs, labels, torch.where(labels == 2, has_another, possible)
