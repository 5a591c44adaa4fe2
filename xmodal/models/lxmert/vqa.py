"""Visual question answering by choosing from a table: LXMERT on VQA and GQA."""

import torch
from torch import Tensor, nn

from xmodal.models.base import set_answers
from xmodal.models.lxmert.model import LxmertModel
from xmodal.registry import MODELS
from xmodal.structures import CrossAttentions, DataSample, ImageTextBatch, Regions


@MODELS.register_module()
class LxmertVQA(LxmertModel):
    """The pre-trained backbone, and a score for every answer of a table.

    Weights of a pre-training go to the same answers of this table, whatever their order there
    (:class:`xmodal.models.heads.AnswerTableHead`).

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`LxmertBackbone`.
        head: config of the head, without its width.
        report: answers reported for each question, the best first.
        report_attention: also report what the answer looks at, for GQA's grounding score.
    """

    def __init__(
        self,
        data_preprocessor: dict,
        backbone: dict,
        head: dict,
        report: int = 5,
        report_attention: bool = False,
    ) -> None:
        super().__init__(data_preprocessor, backbone)
        head = MODELS.build({**head, 'embed_dims': self.backbone.embed_dims})
        self.set_heads(nn.ModuleDict({'answers': head}))
        self.report, self.report_attention = report, report_attention

    def loss(self, batch: ImageTextBatch, samples: list[DataSample]) -> dict[str, Tensor]:
        """``loss_answers`` and the accuracy; samples have ``answers`` and ``answer_weights``."""
        return self.heads['answers'].question_loss(self.tensor(batch), samples)

    def predict(self, batch: ImageTextBatch, samples: list[DataSample]) -> list[DataSample]:
        """Sets ``predicted``, and ``top_answers``: the best, each with its probability.

        With ``report_attention`` it also sets ``attention``: x1, y1, x2, y2 of each region as
        shares of the image, and its attention, float32 (R, 5). This is the attention of [CLS], from
        which the answer is read, in the last cross-modality layer, the mean over its heads.
        """
        fused = self.backbone.fuse_batch(
            batch, need_image=False, need_attentions=self.report_attention
        )
        if self.report_attention:
            _set_attention(samples, batch.images, fused.attentions[-1])
        logits = self.heads['answers'](self.backbone.pool(fused))
        return set_answers(samples, self.heads['answers'].best(logits, self.report))

    def tensor(self, batch: ImageTextBatch, samples: list[DataSample] | None = None) -> Tensor:
        """Logits (B, A)."""
        fused = self.backbone.fuse_batch(batch, need_image=False)
        return self.heads['answers'](self.backbone.pool(fused))


def _set_attention(
    samples: list[DataSample], regions: Regions, attentions: CrossAttentions
) -> None:
    """Sets ``attention`` to the boxes of the regions and the attention of [CLS] to each."""
    weights = attentions.text_to_image[:, :, 0].float().mean(1)  # (B, R)
    rows = torch.cat([regions.boxes, weights[..., None]], -1).cpu()
    for sample, row, mask in zip(samples, rows, regions.attention_mask.cpu(), strict=True):
        sample.attention = row[mask]
