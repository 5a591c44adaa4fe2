"""What can be answered without images: a prior, and a reader of bags of words."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import cycle, islice
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from tqdm import tqdm

CHOICE = 'choose'  # GQA's structural type of questions that name two answers
MAX_ANSWERS = 3000  # that the reader knows; VQA's models have tables of about this size
BATCH_SIZE = 2**15
STEPS = 300  # of Adam; batches take turns if there are many texts
DECAY = 1e-4  # weight of the sum of the squared weights, without the bias, in the loss


class Texts(NamedTuple):
    """The texts of a data set.

    Attributes:
        words: of each text.
        scores: from 0 to 1, of the right answers to each text; a label is the only right answer.
        types: of the questions; '' for all texts with a label.
        groups: names of what samples share, of each text.
    """

    words: list[list[str]]
    scores: list[dict[str, float]]
    types: list[str]
    groups: list[str]


def prior_scores(train: Texts, test: Texts) -> list[float]:
    """What a prior scores in each test text, from 0 to 1.

    It gives the best training answer to the type of the question, or the best of all for an unknown
    type. A question that names two answers scores one half.
    """
    by_type: dict[str, list[dict[str, float]]] = defaultdict(list)
    for kind, scores in zip(train.types, train.scores, strict=True):
        by_type[kind].append(scores)
    best = {kind: max(total, key=total.get) for kind in by_type if (total := _sum(by_type[kind]))}
    total = _sum(train.scores)
    fallback = max(total, key=total.get)
    return [
        0.5 if kind.split(' ')[0] == CHOICE else scores.get(best.get(kind, fallback), 0.0)
        for kind, scores in zip(test.types, test.scores, strict=True)
    ]


def _sum(scores: Iterable[dict[str, float]]) -> Counter[str]:
    """The sum of the scores of each answer."""
    total: Counter[str] = Counter()
    for some in scores:
        total.update(some)
    return total


class BagOfWordsReader:
    """A linear classifier of the words of a text and the type of its question.

    Args:
        train: the texts that it learns from.
    """

    def __init__(self, train: Texts) -> None:
        words = sorted(set().union(*_bags(train)))
        self.word_ids = {word: i for i, word in enumerate(words)}
        self.answers = [answer for answer, _ in _sum(train.scores).most_common(MAX_ANSWERS)]
        self.weights = torch.zeros(1 + len(words), len(self.answers), requires_grad=True)
        self._train(train)

    def __call__(self, texts: Texts) -> list[str]:
        """The most probable answer to each text."""
        with torch.no_grad():
            best = self._logits(self._encode(texts)).argmax(1)
        return [self.answers[i] for i in best.tolist()]

    def _train(self, train: Texts) -> None:
        """Minimises −Σ s(a) log p(a) over the answers a of each text with their scores s.

        Then the most probable answer is the one with the greatest expected score.
        """
        count = -(-len(train.words) // BATCH_SIZE)
        parts = [Texts(*(column[first::count] for column in train)) for first in range(count)]
        batches = [(self._encode(part), self._targets(part)) for part in parts]
        optimizer = torch.optim.Adam([self.weights], lr=0.05)
        progress = tqdm(range(STEPS), 'training the reader', disable=None)
        for _, (bags, targets) in zip(progress, islice(cycle(batches), STEPS), strict=True):
            loss = cross_entropy(self._logits(bags), targets.to_dense())
            loss = loss + DECAY * self.weights[1:].square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def _logits(self, bags: Tensor) -> Tensor:
        return self.weights[0] + torch.sparse.mm(bags, self.weights[1:])

    def _encode(self, texts: Texts) -> Tensor:
        """The presence of the known words, (N, W)."""
        return _sparse([dict.fromkeys(bag, 1.0) for bag in _bags(texts)], self.word_ids)

    def _targets(self, texts: Texts) -> Tensor:
        """The scores of the known answers, (N, A)."""
        return _sparse(texts.scores, {answer: i for i, answer in enumerate(self.answers)})


def _bags(texts: Texts) -> list[set[str]]:
    """The words and the type of each text; the space tells a type from a word."""
    return [{*words, f' {kind}'} for words, kind in zip(texts.words, texts.types, strict=True)]


def _sparse(rows: list[dict[str, float]], ids: dict[str, int]) -> Tensor:
    """A sparse matrix of the values of known names, (N, len(ids))."""
    known = [
        (n, ids[k], value) for n, row in enumerate(rows) for k, value in row.items() if k in ids
    ]
    index = torch.tensor([place for *place, _ in known], dtype=torch.int64).reshape(-1, 2).T
    values = torch.tensor([value for *_, value in known])
    return torch.sparse_coo_tensor(index, values, (len(rows), len(ids)), check_invariants=True)
