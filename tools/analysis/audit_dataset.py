"""Whether the texts of a data set give its labels away: a bag-of-words reader without images.

Usage::

    python tools/analysis/audit_dataset.py configs/acerpe/snli_ve_shapes.py

For tasks with a label (entailment, NLVR2) and for questions (VQA, GQA). The reader, a linear
classifier of the words of a text, is trained on the training set and compared with a prior on the
test set. Words leak where the reader is better than the prior beyond doubt.

The prior of a label is the most frequent one. The prior of a question is the best training answer
to questions of its type, since its words may tell what kind of answer it has: a colour, a number.
The reader is told the type, too, so that all it gains is due to other words. The types are those of
the data set, where they follow from the question:

* VQA's ``question_type``, the first words. Its ``answer_type`` follows from the answer.
* GQA's structural and semantic type and its global group. A question of the type 'choose' names
  two answers, and its prior is one half.
* The first two words where the data set has no types.

An answer counts by VQA's accuracy or its score in the label. GQA's unbalanced questions are left
out, as its accuracy does. Types with few questions are in the first row only. The intervals are by
groups of samples of one image, or of one sentence where the data set has groups. They hold all
together with 95 % (Bonferroni), so that a data set with many types is not accused more often.
"""

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from itertools import compress
from math import sqrt
from typing import NamedTuple

import numpy as np
from rich.console import Console
from scipy import stats
from torch.utils.data import Dataset
from tqdm import tqdm

from xmodal.ablation.paired import LEVEL, paired_difference
from xmodal.benchmark import make_table
from xmodal.datasets.answers import answer_scores
from xmodal.engine.command_line import Options
from xmodal.engine.errors import ConfigError, run_or_explain
from xmodal.engine.launch import merge_options, read_config
from xmodal.evaluation.queries import QueryResults
from xmodal.evaluation.task import in_percent, where
from xmodal.evaluation.text_only import BagOfWordsReader, Texts, prior_scores
from xmodal.registry import DATASETS, register_all

MIN_GROUPS = 30  # of a type with an own interval
MIN_SHARE = 0.01


class Finding(NamedTuple):
    """What the reader found in the texts of a type, in percent.

    Attributes:
        name: the type; 'all' for the whole test set.
        size: number of texts.
        prior: accuracy of the prior.
        gain: accuracy of the reader minus that of the prior.
        half_width: of the interval of the gain.
    """

    name: str
    size: int
    prior: float
    gain: float
    half_width: float

    @property
    def leaks(self) -> bool:
        """Whether the reader is better than the prior beyond doubt."""
        return self.gain > self.half_width


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config', help='config file with train_dataloader and test_dataloader')
    parser.add_argument(
        '--cfg-options', nargs='+', action=Options, default={}, help='override keys of the config'
    )
    return parser.parse_args()


def samples_of(dataset: Dataset) -> Iterator[dict]:
    """The samples of a data set without their images; of several as one, each sample once."""
    for part in getattr(dataset, 'datasets', ()):
        yield from samples_of(part)
    if hasattr(dataset, 'get_data_info'):
        for index in range(len(dataset)):
            yield dataset.get_data_info(index, random.Random(0))


def read_texts(dataset: Dataset, name: str) -> Texts:
    """The texts of a data set with their labels or answers.

    Raises:
        ConfigError: when its samples have neither a label nor answers, or no answer is known.
    """
    texts = Texts([], [], [], [])
    for info in tqdm(samples_of(dataset), f'reading {name}', disable=None):
        if not isinstance(info.get('text'), str) or not {'label', 'answers'} & info.keys():
            raise ConfigError(
                f'{name}.dataset is a {type(dataset).__name__}, whose samples have no text with a '
                'label or answers: this audit is for entailment, NLVR2, VQA and GQA'
            )
        if not info.get('gqa', {}).get('balanced', True):
            continue
        texts.words.append(info['text'].split())
        texts.scores.append(right_answers(info))
        texts.types.append('' if 'label' in info else type_of_question(info))
        texts.groups.append(str(info.get('group') or info['image_id']))
    if not any(texts.scores):
        raise ConfigError(
            f'{name}.dataset: no answer to its questions is known, as in a test set that only a '
            'server can score; name one with annotations (dataset.ann_file)'
        )
    return texts


def right_answers(info: dict) -> dict[str, float]:
    """The right answers to a sample with their scores."""
    if 'label' in info:
        return {str(info['label']): 1.0}
    if people := info.get('human_answers'):
        return answer_scores(people)
    return dict(zip(info['answers'], info['answer_weights'], strict=True))


def type_of_question(info: dict) -> str:
    """What the words of a question tell of the kind of its answer."""
    gqa = info.get('gqa', {})
    if gqa.get('structural'):
        return ' '.join(filter(None, (gqa['structural'], gqa['semantic'], gqa['group'])))
    return info.get('question_type') or f'"{" ".join(info["text"].split()[:2])} …"'


def audit(train: Texts, test: Texts) -> list[Finding]:
    """Trains the reader and compares it with the prior, over all texts and by type."""
    predicted = BagOfWordsReader(train)(test)
    hits = [scores.get(answer, 0.0) for scores, answer in zip(test.scores, predicted, strict=True)]
    masks = {'all': [True] * len(test.types)}
    for kind, count in Counter(test.types).most_common():
        if not kind or count < MIN_SHARE * len(test.types):
            continue
        mask = [one == kind for one in test.types]
        if len(set(compress(test.groups, mask))) >= MIN_GROUPS:
            masks[kind] = mask
    ids, groups = np.arange(len(hits)).astype(str), np.array(test.groups)
    reader, prior = (
        {name: np.array(where(in_percent(scores), mask)) for name, mask in masks.items()}
        for scores in (hits, prior_scores(train, test))
    )
    reader_queries, prior_queries = ({'q': QueryResults(ids, groups, c)} for c in (reader, prior))
    findings = []
    for name, mask in masks.items():
        difference = paired_difference([reader_queries], [prior_queries], [name])
        quantile = stats.t.isf(LEVEL / 2 / len(masks), difference.groups - 1)
        half_width = quantile * sqrt(difference.query_variance)
        share = float(np.nanmean(prior[name]))
        findings.append(Finding(name, sum(mask), share, difference.mean, half_width))
    return findings


def main() -> None:
    """Audits the data set of a config."""
    args = parse_args()
    register_all()
    config = read_config(args.config, 'train_dataloader', 'test_dataloader')
    merge_options(config, args.cfg_options)
    train, test = (
        read_texts(DATASETS.build(config[name].dataset), name)
        for name in ('train_dataloader', 'test_dataloader')
    )
    title = f'{len(test.words)} tests, {len(train.words)} training texts'
    table = make_table(title, '', 'tests', 'prior', 'bag of words', 'difference', 'verdict')
    for found in audit(train, test):
        table.add_row(
            found.name,
            str(found.size),
            f'{found.prior:.1f} %',
            f'{found.prior + found.gain:.1f} %',
            f'{found.gain - found.half_width:+.1f} … {found.gain + found.half_width:+.1f}',
            'the words leak' if found.leaks else 'no leak is seen',
        )
    Console().print(table)


if __name__ == '__main__':
    run_or_explain(main)
