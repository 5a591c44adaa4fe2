"""Answers chosen from a table: LXMERT's visual question answering."""

import json
import logging
from itertools import zip_longest

import torch
from mmengine.logging import print_log
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from xmodal.datasets.answers import read_answer_list
from xmodal.models.heads.answer_list import AnswerTable
from xmodal.models.heads.pretrain_head import PretrainHead
from xmodal.registry import MODELS
from xmodal.structures import DataSample, LxmertStep

UNKNOWN = -1  # a label that does not count
PATIENCE = 1000  # samples without a known answer before the warning


@MODELS.register_module()
class AnswerTableHead(PretrainHead):
    """A score for every answer of a table, from the cross-modality output.

    A checkpoint holds the table with the weights. A model with another table loads the weights
    answer by answer, whatever the order, and answers that the checkpoint lacks get zeros: so
    fine-tuning starts from what pre-training has learned of each answer.

    Args:
        embed_dims: D.
        answer_list: JSON file, a list of answers.
        loss: 'ce', cross-entropy with one answer; 'bce', binary cross-entropy of each answer with
            its weight, summed over the table.
        loss_weight: factor of the loss.
        linear: one layer in the place of LXMERT's two: for some thousand questions they have too
            many weights. It starts at zeros, but in LXMERT as all its heads do.

    Raises:
        FileNotFoundError: when ``answer_list`` does not exist.
        ValueError: when it is no list of answers, or ``loss`` is unknown.
    """

    order = 7
    reads_image_tokens = False

    def __init__(
        self,
        embed_dims: int,
        answer_list: str,
        loss: str = 'ce',
        loss_weight: float = 1.0,
        linear: bool = False,
    ) -> None:
        super().__init__()
        if loss not in ('ce', 'bce'):
            raise ValueError(f"heads.answers.loss='{loss}', expected 'ce' or 'bce'")
        self.loss_name, self.loss_weight = loss, loss_weight
        self.table = AnswerTable(read_answer_list(answer_list, 'heads.answers.answer_list'))
        if linear:
            self.classifier = nn.Sequential(nn.Linear(embed_dims, len(self.table)))
            nn.init.zeros_(self.classifier[0].weight)
            nn.init.zeros_(self.classifier[0].bias)
        else:
            self.classifier = nn.Sequential(
                nn.Linear(embed_dims, 2 * embed_dims),
                nn.GELU(),
                nn.LayerNorm(2 * embed_dims, eps=1e-12),
                nn.Linear(2 * embed_dims, len(self.table)),
            )
        self.register_load_state_dict_pre_hook(_reorder_answers)
        self._unanswered: int | None = 0  # samples so far; None once an answer is known, or warned

    def forward(self, pooled: Tensor) -> Tensor:
        """Cross-modality output (B, D) to logits (B, A)."""
        return self.classifier(pooled)

    def check(self, model: nn.Module) -> None:
        """Raises ValueError for the binary cross-entropy, which fine-tuning alone has."""
        if self.loss_name != 'ce':
            raise ValueError(
                f"heads.answers.loss='{self.loss_name}' is for fine-tuning; pre-training samples "
                "one answer of each question: set it to 'ce'"
            )

    def loss(self, model: nn.Module, step: LxmertStep) -> dict[str, Tensor]:
        """:meth:`label_loss` where the question belongs to the image.

        Samples have ``answers`` and ``answer_weights``, empty where the text is no question.
        """
        matched = step.shown.matched
        answers, weights = self._answers_of(step.samples)
        labels = self.sample_labels(answers, weights).to(matched.device)
        return self.label_loss(self(step.pooled), labels.masked_fill(~matched, UNKNOWN))

    def question_loss(self, logits: Tensor, samples: list[DataSample]) -> dict[str, Tensor]:
        """``loss_answers`` and the accuracy; samples have ``answers`` and ``answer_weights``."""
        answers, weights = self._answers_of(samples)
        if self.loss_name == 'bce':
            return self.score_loss(logits, self.targets(answers, weights).to(logits.device))
        return self.label_loss(logits, self.sample_labels(answers, weights).to(logits.device))

    def _answers_of(self, samples: list[DataSample]) -> tuple[list[list[str]], list[list[float]]]:
        """The answers of samples in training, and the weight of each."""
        answers = [sample.answers for sample in samples]
        self._warn_of_other_answers(answers)
        return answers, [sample.answer_weights for sample in samples]

    def _warn_of_other_answers(self, answers: list[list[str]]) -> None:
        """Warns once where the table has none of the answers: nothing is learned of them."""
        if self._unanswered is None:
            return
        given = [answer for of_question in answers for answer in of_question]
        if any(self.table.find(answer) is not None for answer in given):
            self._unanswered = None
            return
        self._unanswered += len(answers)
        if self._unanswered >= PATIENCE:
            found = f', as {given[0]!r},' if given else ''
            print_log(
                f'the first {self._unanswered} samples have no answer{found} that is in '
                'heads.answers.answer_list, so that none is learned: does the list belong to the '
                'questions, and are there any?',
                'current',
                logging.WARNING,
            )
            self._unanswered = None

    def sample_labels(self, answers: list[list[str]], weights: list[list[float]]) -> Tensor:
        """Samples an answer of the table for each question, in proportion to the weights.

        Args:
            answers: of each question; none where the text is no question.
            weights: of the answers.

        Returns:
            (B,) int64, ``UNKNOWN`` where the table has none of the answers.
        """
        known = [
            [
                (index, weight)
                for answer, weight in zip(*question, strict=True)
                if weight > 0 and (index := self.table.find(answer)) is not None
            ]
            or [(UNKNOWN, 1.0)]
            for question in zip(answers, weights, strict=True)
        ]
        # One draw for all questions: a draw for each would be most of the time of the losses.
        columns = list(zip_longest(*known, fillvalue=(UNKNOWN, 0.0)))
        indices = torch.tensor([[index for index, _ in column] for column in columns]).T
        shares = torch.tensor([[weight for _, weight in column] for column in columns]).T
        return indices.gather(1, shares.multinomial(1)).squeeze(1)

    def targets(self, answers: list[list[str]], weights: list[list[float]]) -> Tensor:
        """Scores (B, A) in 0…1; answers that the table lacks do not count.

        The weights of answers that are the same in the table add up.
        """
        targets = torch.zeros(len(answers), len(self.table))
        for row, pairs in enumerate(zip(answers, weights, strict=True)):
            for answer, weight in zip(*pairs, strict=True):
                if (index := self.table.find(answer)) is not None:
                    targets[row, index] += weight
        return targets.clamp(max=1)

    def label_loss(self, logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Cross-entropy with (B,) labels, mean over those known; 0, with gradient 0, without any.

        ``answer_accuracy`` is the share of the known ones that are predicted.
        """
        known = labels != UNKNOWN
        count = known.sum().clamp(min=1)
        loss = cross_entropy(logits.float(), labels, ignore_index=UNKNOWN, reduction='sum') / count
        correct = (logits.argmax(1) == labels) & known
        return {
            'loss_answers': self.loss_weight * loss,
            'answer_accuracy': correct.sum().float() / count,
        }

    def score_loss(self, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Binary cross-entropy with (B, A) scores, summed over answers, mean over questions.

        ``answer_accuracy`` is the mean score of the answers given.
        """
        loss = binary_cross_entropy_with_logits(logits.float(), targets, reduction='sum')
        score = targets.gather(1, logits.argmax(1, keepdim=True)).mean()
        return {
            'loss_answers': self.loss_weight * loss / len(targets),
            'answer_accuracy': score,
        }

    def best(self, logits: Tensor, count: int) -> list[list[tuple[str, float]]]:
        """The likeliest answers of each question, the best first, with their probabilities."""
        logits = logits.float()
        scores = logits.sigmoid() if self.loss_name == 'bce' else logits.softmax(1)
        scores, indices = (x.tolist() for x in scores.topk(min(count, len(self.table)), dim=1))
        return [
            [(self.table.answers[index], score) for index, score in zip(*of_question, strict=True)]
            for of_question in zip(indices, scores, strict=True)
        ]

    def get_extra_state(self) -> Tensor:
        """The table, for the checkpoint: its JSON in UTF-8, uint8."""
        return torch.tensor(list(json.dumps(self.table.answers).encode()), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Nothing to do: the weights are reordered before they are loaded."""


def _reorder_answers(head: AnswerTableHead, state_dict: dict[str, Tensor], prefix: str, *_) -> None:
    """Brings the last layer of a checkpoint into the order of the head's table, by the answers.

    Raises:
        ValueError: when the checkpoint has another number of layers, whose first has the same name.
    """
    first, norm = (f'{prefix}classifier.{index}.weight' for index in (0, 2))
    is_linear = len(head.classifier) == 1
    if first in state_dict and (norm not in state_dict) != is_linear:
        raise ValueError(
            f'{prefix}classifier has {"two layers" if is_linear else "one layer"} there and '
            f'{"one" if is_linear else "two"} here: set linear={not is_linear} of the '
            f"AnswerTableHead, or let it start anew, load_from_ignore=['{prefix.rstrip('.')}']"
        )
    last = f'{prefix}classifier.{len(head.classifier) - 1}'
    key, names = f'{prefix}_extra_state', [f'{last}.{x}' for x in ('weight', 'bias')]
    if key not in state_dict or any(name not in state_dict for name in names):
        return
    source = AnswerTable(json.loads(bytes(state_dict[key].tolist())))
    if source.answers == head.table.answers:
        return
    indices = [source.find(answer) for answer in head.table.answers]
    is_known = torch.tensor([index is not None for index in indices])
    rows = torch.tensor([index or 0 for index in indices])
    for name in names:
        value = state_dict[name][rows.to(state_dict[name].device)]
        value[~is_known.to(value.device)] = 0
        state_dict[name] = value
    state_dict[key] = head.get_extra_state()
    print_log(
        f'{int(is_known.sum())} of {len(is_known)} answers start from the weights of the '
        'checkpoint, matched by their text; the others start from zeros',
        logger='current',
    )
