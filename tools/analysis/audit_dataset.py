"""Whether the texts of a data set give its labels away: a bag-of-words reader without images.

Usage::

    python tools/analysis/audit_dataset.py configs/acerpe/snli_ve_shapes.py

For tasks with a label (entailment, NLVR2). The reader, a linear classifier of the words of a text,
is trained on the training set and compared with always answering its most frequent label, on the
test set. The interval is by groups of samples of one image, or of one sentence where the data set
has groups.
"""

import argparse
import random
from collections import Counter
from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from scipy import stats
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset
from tqdm import tqdm

from xmodal.ablation.paired import LEVEL, paired_difference
from xmodal.engine.errors import ConfigError, run_or_explain
from xmodal.engine.launch import read_config
from xmodal.evaluation.queries import QueryResults
from xmodal.registry import DATASETS, register_all


class Texts(NamedTuple):
    """The texts of a data set.

    Attributes:
        words: of each text.
        labels: (N,) int64.
        groups: names of what samples share, of each text.
    """

    words: list[list[str]]
    labels: Tensor
    groups: list[str]


class Audit(NamedTuple):
    """What the reader found, in percent of the test set.

    Attributes:
        majority: accuracy of the most frequent training label.
        reader: accuracy of the reader.
        half_width: of the 95 % interval of their difference.
    """

    majority: float
    reader: float
    half_width: float

    @property
    def leaks(self) -> bool:
        """Whether the reader is better than chance beyond doubt."""
        return self.reader - self.majority > self.half_width


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config', help='config file with train_dataloader and test_dataloader')
    return parser.parse_args()


def read_texts(dataset: Dataset, name: str) -> Texts:
    """The texts and labels of a data set; its images are not read.

    Raises:
        ConfigError: when its samples have no label.
    """
    words, labels, groups = [], [], []
    for index in tqdm(range(len(dataset)), f'reading {name}', disable=None):
        info = dataset.get_data_info(index, random.Random(0))
        if 'label' not in info or not isinstance(info.get('text'), str):
            raise ConfigError(
                f'{name}.dataset is a {type(dataset).__name__}, whose samples have no text with a '
                'label: this audit is for entailment and NLVR2'
            )
        words.append(info['text'].split())
        labels.append(info['label'])
        groups.append(str(info.get('group') or info['image_id']))
    return Texts(words, torch.tensor(labels), groups)


def bag_of_words(texts: list[list[str]]) -> Callable[[list[list[str]]], Tensor]:
    """What turns texts into the presence of the words that occur in ``texts``, (N, W)."""
    ids = {word: i for i, word in enumerate(sorted({word for text in texts for word in text}))}

    def encode(others: list[list[str]]) -> Tensor:
        rows = [(n, ids[word]) for n, text in enumerate(others) for word in {*text} & ids.keys()]
        index = torch.tensor(rows, dtype=torch.int64).reshape(-1, 2).T
        return torch.sparse_coo_tensor(
            index, torch.ones(len(rows)), (len(others), len(ids)), check_invariants=True
        )

    return encode


def train_reader(bags: Tensor, labels: Tensor, steps: int = 300, decay: float = 1e-4) -> Tensor:
    """The weights of a linear classifier of bags, (1 + W, C), with the bias first."""
    weights = torch.zeros(1 + bags.shape[1], int(labels.max()) + 1, requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=0.05)
    for _ in tqdm(range(steps), 'training the reader', disable=None):
        logits = weights[0] + torch.sparse.mm(bags, weights[1:])
        loss = cross_entropy(logits, labels) + decay * weights[1:].square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return weights.detach()


def audit(train: Texts, test: Texts) -> Audit:
    """Trains the reader and compares it with the most frequent label."""
    encode = bag_of_words(train.words)
    weights = train_reader(encode(train.words), train.labels)
    predicted = (weights[0] + torch.sparse.mm(encode(test.words), weights[1:])).argmax(1)
    frequent, _ = Counter(train.labels.tolist()).most_common(1)[0]
    ids, groups = np.arange(len(test.labels)).astype(str), np.array(test.groups)
    reader, majority = (
        {'q': QueryResults(ids, groups, {'accuracy': 100.0 * hits.double().numpy()})}
        for hits in (predicted == test.labels, test.labels == frequent)
    )
    difference = paired_difference([reader], [majority], ['accuracy'])
    quantile = stats.t.ppf(1 - LEVEL / 2, difference.groups - 1)
    share = 100 * (test.labels == frequent).double().mean().item()
    return Audit(share, share + difference.mean, quantile * sqrt(difference.query_variance))


def main() -> None:
    """Audits the data set of a config."""
    args = parse_args()
    register_all()
    config = read_config(args.config, 'train_dataloader', 'test_dataloader')
    train, test = (
        read_texts(DATASETS.build({**config[name].dataset, 'pipeline': []}), name)
        for name in ('train_dataloader', 'test_dataloader')
    )
    found = audit(train, test)
    table = Table(title=f'{len(test.labels)} tests, {len(train.labels)} training texts')
    for heading in ('most frequent label', 'bag of words', 'difference, 95 % interval', 'verdict'):
        table.add_column(heading, justify='right')
    gain = found.reader - found.majority
    table.add_row(
        f'{found.majority:.1f} %',
        f'{found.reader:.1f} %',
        f'{gain - found.half_width:+.1f} … {gain + found.half_width:+.1f}',
        'the texts give labels away' if found.leaks else 'no leak is seen',
    )
    Console().print(table)


if __name__ == '__main__':
    run_or_explain(main)
