"""Text assignment, the pre-training between ALBEF's and NLVR2."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from xmodal.models.albef.model import AlbefModel
from xmodal.models.heads.negatives import sample_negatives
from xmodal.registry import MODELS
from xmodal.structures import DataSample, ImageTextBatch


@MODELS.register_module()
class TextAssignmentPretrainer(AlbefModel):
    """Text assignment: does the text belong to the first image, the second or neither (ALBEF)?

    Prepares a fusion encoder for two images (``AlbefNLVR``) with image-text pairs alone. A text is
    shown with its image and a similar one of the batch, or with two similar ones. One linear layer
    on the fused [CLS].

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`AlbefBackbone`.
        temperature: other images are sampled with probability softmax(cosine / temperature).
    """

    min_batch = 3  # a text that belongs to neither is shown with two other images

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
        pairs, labels, is_valid = self.sample_images(
            images.embedding.detach(), batch.identities.positives()
        )
        shown = [images.tokens.select(rows) for rows in pairs.unbind(1)]
        words = self.backbone.fuse_images(shown, text, need_image=False)[-1].text_tokens
        logits = self.heads['assignment'](words[:, 0]).float()
        losses = cross_entropy(logits, labels, reduction='none')
        correct = (logits.argmax(1) == labels).float()
        count = is_valid.sum().clamp(min=1)
        return {
            'loss_assignment': (losses * is_valid).sum() / count,
            'assignment_accuracy': (correct * is_valid).sum() / count,
        }

    def sample_images(self, embeddings: Tensor, positives: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Samples the two images that each text is shown with; each answer has probability 1/3.

        Args:
            embeddings: of the images, (B, d).
            positives: images that match a text, never sampled as others, (B, B) bool.

        Returns:
            Rows of the first and second image (B, 2), labels (B,), 0 first, 1 second, 2 neither,
            and (B,) bool: False where the batch has too few other images.
        """
        logits = embeddings.float() @ embeddings.float().T / self.temperature
        rows = torch.arange(len(embeddings), device=embeddings.device)
        other, has_other = sample_negatives(logits, positives)
        sampled = one_hot(other, len(embeddings)).bool()
        another, has_another = sample_negatives(logits, positives | sampled)
        labels = torch.randint(3, rows.shape, device=rows.device)
        choices = torch.stack([rows, other, another], 1)
        columns = torch.tensor([[0, 1], [1, 0], [1, 2]], device=rows.device)
        pairs = choices.gather(1, columns[labels])
        return pairs, labels, torch.where(labels == 2, has_another, has_other)
