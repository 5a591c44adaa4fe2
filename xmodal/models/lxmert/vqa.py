"""Visual question answering by choosing from a table: LXMERT on VQA and GQA."""

from torch import Tensor, nn

from xmodal.models.base import set_answers
from xmodal.models.lxmert.model import LxmertModel
from xmodal.registry import MODELS
from xmodal.structures import DataSample, ImageTextBatch


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
    """

    def __init__(
        self, data_preprocessor: dict, backbone: dict, head: dict, report: int = 5
    ) -> None:
        super().__init__(data_preprocessor, backbone)
        head = MODELS.build({**head, 'embed_dims': self.backbone.embed_dims})
        self.set_heads(nn.ModuleDict({'answers': head}))
        self.report = report

    def loss(self, batch: ImageTextBatch, samples: list[DataSample]) -> dict[str, Tensor]:
        """``loss_answers`` and the accuracy; samples have ``answers`` and ``answer_weights``."""
        head, logits = self.heads['answers'], self.tensor(batch)
        answers = [sample.answers for sample in samples]
        weights = [sample.answer_weights for sample in samples]
        if head.loss_name == 'bce':
            return head.score_loss(logits, head.targets(answers, weights).to(logits.device))
        return head.label_loss(logits, head.sample_labels(answers, weights).to(logits.device))

    def predict(self, batch: ImageTextBatch, samples: list[DataSample]) -> list[DataSample]:
        """Sets ``predicted``, and ``top_answers``: the best, each with its probability."""
        return set_answers(samples, self.heads['answers'].best(self.tensor(batch), self.report))

    def tensor(self, batch: ImageTextBatch, samples: list[DataSample] | None = None) -> Tensor:
        """Logits (B, A)."""
        fused = self.backbone.fuse_batch(batch, need_image=False)
        return self.heads['answers'](self.backbone.pool(fused))
