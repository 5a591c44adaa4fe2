"""Visual question answering by choosing out of a table: LXMERT on VQA and GQA."""

from torch import Tensor

from xmodal.models.lxmert.backbone import LxmertModel
from xmodal.registry import MODELS
from xmodal.structures import DataSample, RegionTextBatch


@MODELS.register_module()
class LxmertVQA(LxmertModel):
    """The backbone of the pre-training, and a score for every answer of a table.

    Weights of a pre-training go to the same answers of this table, whatever their place there
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
        super().__init__(data_preprocessor, backbone, {'answers': head})
        self.report = report

    def loss(self, batch: RegionTextBatch, samples: list[DataSample]) -> dict[str, Tensor]:
        """``loss_answers`` and the accuracy; samples have ``answers`` and ``answer_weights``."""
        head, logits = self.heads['answers'], self.tensor(batch)
        answers = [sample.answers for sample in samples], [s.answer_weights for s in samples]
        if head.loss_name == 'bce':
            return head.score_loss(logits, head.targets(*answers).to(logits.device))
        return head.label_loss(logits, head.draw(*answers).to(logits.device))

    def predict(self, batch: RegionTextBatch, samples: list[DataSample]) -> list[DataSample]:
        """Sets ``predicted``, and ``top_answers``: the best, each with its probability."""
        best = self.heads['answers'].best(self.tensor(batch), self.report)
        for sample, answers in zip(samples, best, strict=True):
            sample.predicted = answers[0][0]
            sample.top_answers = answers
        return samples

    def tensor(self, batch: RegionTextBatch, samples: list[DataSample] | None = None) -> Tensor:
        """Logits (B, A)."""
        fused = self.fuse(batch, need_image=False)
        return self.heads['answers'](self.backbone.pool(fused))
