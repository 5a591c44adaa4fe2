"""Classification of images with text by their vectors: visual entailment with little data."""

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from xmodal.models.albef.model import AlbefModel
from xmodal.models.base import ClassifierMixin
from xmodal.registry import MODELS
from xmodal.structures import DataSample, ImageTextBatch


@MODELS.register_module()
class AlbefVectorClassifier(ClassifierMixin, AlbefModel):
    """A class for each image with its text, by the vectors of a pre-trained dual encoder.

    The head reads the vector of the text and, of the image, its similarity with the text alone.
    Nothing is fused: with a few thousand pairs :class:`AlbefClassifier` learns the texts by heart
    and hardly looks at images.

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`AlbefBackbone`.
        head: config of the head, without its width.
        temperature: of the similarity.
        dropout: of the vector of the text.
    """

    def __init__(
        self,
        data_preprocessor: dict,
        backbone: dict,
        head: dict,
        temperature: float = 0.07,
        dropout: float = 0.3,
    ) -> None:
        super().__init__(data_preprocessor, backbone)
        head = MODELS.build({**head, 'embed_dims': self.backbone.proj_dims + 1})
        self.heads = nn.ModuleDict({'classification': head})
        self.temperature = temperature
        self.dropout = nn.Dropout(dropout)

    def tensor(self, batch: ImageTextBatch, samples: list[DataSample] | None = None) -> Tensor:
        """Logits (B, C)."""
        image = self.backbone.encode_image(batch.images, need_tokens=False).embedding
        text = self.backbone.encode_text(
            batch.input_ids, batch.attention_mask, need_tokens=False
        ).embedding
        similarity = (image * text).sum(1, keepdim=True) / self.temperature
        text = self.dropout(layer_norm(text, text.shape[-1:]))
        return self.heads['classification'](torch.cat([text, similarity], 1)[:, None])
