"""Answers chosen out of a table: LXMERT's image question answering."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from mmengine.logging import print_log
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from xmodal.datasets.answers import normalize_answer, normalize_lxmert_answer
from xmodal.files import read_json
from xmodal.registry import MODELS

UNKNOWN = -1  # a label that does not count
# Ways to write an answer, the first by which two are the same counts.
_WRITINGS = (str, normalize_lxmert_answer, normalize_answer)


def read_answer_list(file: str | Path, key: str) -> list[str]:
    """The answers of a JSON file, a list of strings; ``key`` of the config names it.

    Raises:
        FileNotFoundError: when it is not there.
        ValueError: when it is no list of answers.
    """
    file = Path(file)
    if not file.is_file():
        raise FileNotFoundError(
            f'{key}: {file} is not there (from {Path.cwd()}). docs/tasks/vqa.md and '
            'docs/regions.md say how to make it'
        )
    answers = read_json(file)
    if not (isinstance(answers, list) and answers and all(isinstance(a, str) for a in answers)):
        raise ValueError(f'{key}: {file} is no JSON list of answers, ["yes", …]')
    return answers


class AnswerTable:
    """Finds answers in a list: by their text, or written as LXMERT's table or VQA's evaluation.

    Args:
        answers: the list; of several that are written alike, the first counts.
    """

    def __init__(self, answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self._places = [{} for _ in _WRITINGS]
        for place, answer in enumerate(self.answers):
            for places, write in zip(self._places, _WRITINGS, strict=True):
                places.setdefault(write(answer), place)

    def __len__(self) -> int:
        return len(self.answers)

    def find(self, answer: str) -> int | None:
        """The place of an answer, None where the table lacks it."""
        for places, write in zip(self._places, _WRITINGS, strict=True):
            if (place := places.get(write(answer))) is not None:
                return place
        return None


@MODELS.register_module()
class AnswerTableHead(nn.Module):
    """A score for every answer of a table, from the cross-modality output.

    A checkpoint holds the table with the weights. Where another table is loaded, the weights of an
    answer go to the same answer, whatever its place, and answers that were not there get zeros:
    fine-tuning begins with what pre-training knows of each answer.

    Args:
        embed_dims: D.
        answer_list: JSON file, a list of answers.
        loss: 'ce', of one answer; 'bce', of every answer by itself, whose target is its weight,
            summed over the table.
        loss_weight: factor of the loss.

    Raises:
        FileNotFoundError: when ``answer_list`` is not there.
        ValueError: when it is no list of answers, or ``loss`` is unknown.
    """

    def __init__(
        self,
        embed_dims: int,
        answer_list: str,
        loss: str = 'ce',
        loss_weight: float = 1.0,
    ) -> None:
        super().__init__()
        if loss not in ('ce', 'bce'):
            raise ValueError(f"heads.answers.loss='{loss}', expected 'ce' or 'bce'")
        self.loss_name, self.loss_weight = loss, loss_weight
        self.table = AnswerTable(read_answer_list(answer_list, 'heads.answers.answer_list'))
        self.classifier = nn.Sequential(
            nn.Linear(embed_dims, 2 * embed_dims),
            nn.GELU(),
            nn.LayerNorm(2 * embed_dims, eps=1e-12),
            nn.Linear(2 * embed_dims, len(self.table)),
        )
        self.register_load_state_dict_pre_hook(_rearrange)

    def forward(self, pooled: Tensor) -> Tensor:
        """Cross-modality output (B, D) to logits (B, A)."""
        return self.classifier(pooled)

    def draw(self, answers: list[list[str]], weights: list[list[float]]) -> Tensor:
        """An answer of the table for each question, drawn in proportion to the weights.

        Args:
            answers: of each sample; none where its text is no question.
            weights: of the answers.

        Returns:
            (B,) int64, ``UNKNOWN`` where the table has none of them.
        """
        labels = torch.full((len(answers),), UNKNOWN)
        for row, (own, shares) in enumerate(zip(answers, weights, strict=True)):
            known = [(self.table.find(a), w) for a, w in zip(own, shares, strict=True) if w > 0]
            known = [(place, weight) for place, weight in known if place is not None]
            if known:
                places, shares = zip(*known, strict=True)
                labels[row] = places[int(torch.multinomial(torch.tensor(shares), 1))]
        return labels

    def targets(self, answers: list[list[str]], weights: list[list[float]]) -> Tensor:
        """Scores (B, A) in 0…1; answers that the table lacks count for nothing.

        Where several answers are the same in the table, their weights add.
        """
        targets = torch.zeros(len(answers), len(self.table))
        for row, (own, shares) in enumerate(zip(answers, weights, strict=True)):
            for answer, weight in zip(own, shares, strict=True):
                if (place := self.table.find(answer)) is not None:
                    targets[row, place] += weight
        return targets.clamp(max=1)

    def label_loss(self, logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Cross-entropy with (B,) labels, mean over those known; 0, with gradient 0, without any.

        ``answer_accuracy`` is the share of the known ones that is found.
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
        scores, places = (x.tolist() for x in scores.topk(min(count, len(self.table)), dim=1))
        return [
            [(self.table.answers[place], score) for place, score in zip(*own, strict=True)]
            for own in zip(places, scores, strict=True)
        ]

    def get_extra_state(self) -> Tensor:
        """The table, for the checkpoint: its JSON in UTF-8, uint8."""
        return torch.tensor(list(json.dumps(self.table.answers).encode()), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Nothing to do: weights were put in order before they were loaded."""


def _rearrange(head: AnswerTableHead, state_dict: dict[str, Tensor], prefix: str, *_) -> None:
    """Puts the last layer of a checkpoint in the order of the head's table, by the answers."""
    key, names = f'{prefix}_extra_state', [f'{prefix}classifier.3.{x}' for x in ('weight', 'bias')]
    if key not in state_dict or any(name not in state_dict for name in names):
        return
    source = AnswerTable(json.loads(bytes(state_dict[key].tolist())))
    if source.answers == head.table.answers:
        return
    places = [source.find(answer) for answer in head.table.answers]
    found = torch.tensor([place is not None for place in places])
    rows = torch.tensor([place or 0 for place in places])
    for name in names:
        value = state_dict[name][rows.to(state_dict[name].device)]
        value[~found.to(value.device)] = 0
        state_dict[name] = value
    state_dict[key] = head.get_extra_state()
    print_log(
        f'{int(found.sum())} of {len(found)} answers begin with the weights of the checkpoint, '
        'found by their text; the others with zeros',
        logger='current',
    )
