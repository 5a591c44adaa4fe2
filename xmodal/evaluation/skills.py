"""Which of a few texts is true of an image: accuracy by skill, Winoground's scores, and VSR."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from math import nan
from statistics import fmean

import numpy as np

from xmodal.evaluation.task import TaskMetric, in_percent, where
from xmodal.registry import METRICS

WAYS = ('vectors', 'fusion')  # to score an image with a text


class MinimalPairMetric(TaskMetric):
    """The scores of the texts of each image, by each way to score them.

    A text is chosen when it scores higher than all others: ties count against the model. A
    submission is a list of ``{"pair_id", "vectors", "fusion"}`` with these scores. The column
    ``score`` is by fusion where the model fuses, and else by vectors.

    Args:
        **others: see :class:`TaskMetric`.
    """

    query_id = 'pair_id'

    def record(self, sample: dict) -> dict:
        """The scores with the index of the true text.

        Raises:
            ValueError: when a score is not finite, because its order would be arbitrary.
        """
        record = {name: sample[name] for name in ('label', 'skill', 'pair_id', 'group')}
        for way in (way for way in WAYS if way in sample):
            record[way] = sample[way].tolist()
            if not np.isfinite(record[way]).all():
                raise ValueError(f'the scores ({way}) of {record["pair_id"]} are not finite')
        return record

    def submission(self, records: list[dict]) -> list[dict]:
        """All scores."""
        return [{name: r[name] for name in ('pair_id', *ways(records))} for r in records]


@METRICS.register_module()
class SkillMetric(MinimalPairMetric):
    """Share of images, in percent, whose true text is chosen, for each skill.

    ``WAY/SKILL``, and ``WAY/mean``, the mean over skills. ``WAY/attainable/SKILL`` is the share of
    what can be attained, (accuracy − chance) / (ceiling − chance): 0 for a model that guesses, 100
    for the best there can be. ``chance/SKILL`` is what guessing attains.

    Args:
        ceilings: highest accuracy of a skill, in percent, where it is not 100.
        min_count: skills with fewer samples are left out (25 for ARO's attributes).
        **others: see :class:`TaskMetric`.
    """

    def __init__(
        self, ceilings: Mapping[str, float] | None = None, min_count: int = 1, **others
    ) -> None:
        super().__init__(**others)
        self.ceilings, self.min_count = dict(ceilings or {}), min_count

    def compute_metrics(self, records: list[dict]) -> dict[str, float]:
        """Chance, by skill and over all of them."""
        chances = self._chances(records)
        named = {f'chance/{skill}': value for skill, value in chances.items()}
        return named | {'chance/mean': fmean(chances.values())}

    def query_columns(self, records: list[dict]) -> dict[str, list[float]]:
        """Whether the true text is chosen, over the samples of each skill, and its margin.

        Raises:
            ValueError: for a ceiling that chance reaches.
        """
        skills = [record['skill'] for record in records]
        chances = self._chances(records)
        counts = {skill: skills.count(skill) for skill in chances}
        # The mean of this column over its samples is the mean over the skills.
        weights = [sum(counts.values()) / (len(counts) * counts.get(s, 1)) for s in skills]
        is_listed = [skill in chances for skill in skills]
        columns = {}
        for way in ways(records):
            hits = in_percent([is_chosen(record[way], record['label']) for record in records])
            shares = [
                self._share(hit, skill, chances) if skill in chances else 0.0
                for hit, skill in zip(hits, skills, strict=True)
            ]
            for name, values in ((way, hits), (f'{way}/attainable', shares)):
                for skill in chances:
                    columns[f'{name}/{skill}'] = where(values, [s == skill for s in skills])
                weighted = [value * weight for value, weight in zip(values, weights, strict=True)]
                columns[f'{name}/mean'] = where(weighted, is_listed)
            columns['score'] = [margin(record[way], record['label']) for record in records]
        return columns

    def _chances(self, records: list[dict]) -> dict[str, float]:
        """What guessing attains in each skill that is listed, in percent."""
        by_skill = defaultdict(list)
        for record in records:
            by_skill[record['skill']].append(100 / len(record['vectors']))
        listed = {s: fmean(v) for s, v in by_skill.items() if len(v) >= self.min_count}
        if not listed:
            raise ValueError(f'no skill has min_count={self.min_count} samples or more')
        return listed

    def _share(self, hit: float, skill: str, chances: dict[str, float]) -> float:
        """The share of the attainable that one sample adds, in percent."""
        ceiling, chance = self.ceilings.get(skill, 100.0), chances[skill]
        if ceiling <= chance:
            raise ValueError(f'ceilings.{skill}={ceiling:g}, expected more than chance, {chance:g}')
        return 100 * (hit - chance) / (ceiling - chance)


@METRICS.register_module()
class WinogroundMetric(MinimalPairMetric):
    """Winoground's scores, of examples of two images with both captions each.

    ``text``: each image has its own caption chosen; ``image``: each caption has its own image
    chosen; ``group``: both. Guessing attains 25, 25 and 16.7 %.

    Args:
        **others: see :class:`TaskMetric`.
    """

    def record(self, sample: dict) -> dict:
        """The two samples of an example are not independent."""
        record = super().record(sample)
        return {**record, 'query_group': record['group']}

    def compute_metrics(self, records: list[dict]) -> dict[str, float]:
        """Chance."""
        return {'chance/text': 25.0, 'chance/image': 25.0, 'chance/group': 100 / 6}

    def query_columns(self, records: list[dict]) -> dict[str, list[float]]:
        """The scores of the example of each sample, and the least margin of its comparisons.

        Raises:
            ValueError: when an example has not two samples.
        """
        sizes = Counter(record['group'] for record in records)
        if wrong := [group for group, size in sizes.items() if size != 2]:
            raise ValueError(f'example {wrong[0]} has {sizes[wrong[0]]} samples, expected 2')
        columns = {}
        for way in ways(records):
            by_image = {(r['group'], r['label']): r[way] for r in records}
            by_caption = {(g, i): [by_image[g, 0][i], by_image[g, 1][i]] for g, i in by_image}
            text, image = (
                {g: min(margin(scores[g, i], i) for i in (0, 1)) for g in sizes}
                for scores in (by_image, by_caption)
            )
            group = {g: min(text[g], image[g]) for g in sizes}
            for name, margins in (('text', text), ('image', image), ('group', group)):
                columns[f'{way}/{name}'] = in_percent([margins[r['group']] > 0 for r in records])
            columns['score'] = [group[r['group']] for r in records]
        return columns


@METRICS.register_module()
class StatementMetric(MinimalPairMetric):
    """Accuracy of judging single statements by their scores, as for VSR.

    VSR fine-tunes a classifier; a score needs a threshold instead. The images are divided into two
    halves, and the threshold of each is the best one of the other: no statement is judged by a
    threshold that has seen its label. ``auc``, the chance that a true statement scores higher than
    a false one, needs no threshold and statements of both kinds, and is no mean over statements (it
    cannot be compared by query). ``chance/accuracy`` is that of the more frequent answer.

    Args:
        **others: see :class:`TaskMetric`.
    """

    def compute_metrics(self, records: list[dict]) -> dict[str, float]:
        """AUC by way, and chance."""
        labels = np.array([record['label'] for record in records])
        metrics = {'chance/accuracy': float(100 * max(labels.mean(), 1 - labels.mean()))}
        if 0 < labels.mean() < 1:
            from scipy.stats import mannwhitneyu  # takes half a second, which other runs save

            pairs = (labels == 1).sum() * (labels == 0).sum()
            for way in ways(records):
                scores = np.array([record[way][0] for record in records])
                wins = mannwhitneyu(scores[labels == 1], scores[labels == 0]).statistic
                metrics[f'{way}/auc'] = float(100 * wins / pairs)
            metrics['chance/auc'] = 50.0
        return metrics

    def query_columns(self, records: list[dict]) -> dict[str, list[float]]:
        """Whether each statement is judged right, and its score.

        Raises:
            ValueError: when all statements are of one image.
        """
        labels = np.array([record['label'] for record in records])
        images = sorted({record['query_group'] for record in records})
        if len(images) < 2:
            raise ValueError('two halves need statements of two images or more')
        half_of = {image: index % 2 for index, image in enumerate(images)}
        halves = np.array([half_of[record['query_group']] for record in records])
        columns = {}
        for way in ways(records):
            scores = np.array([record[way][0] for record in records])
            hits = np.zeros(len(records))
            for half in (0, 1):
                judged = halves == half
                threshold = best_threshold(scores[~judged], labels[~judged])
                hits[judged] = (scores[judged] > threshold) == labels[judged]
            columns[f'{way}/accuracy'] = in_percent(hits.tolist())
            columns['score'] = scores.tolist()
        return columns


def ways(records: list[dict]) -> list[str]:
    """The ways that the records are scored by."""
    return [way for way in WAYS if way in records[0]]


def is_chosen(scores: list[float], index: int) -> bool:
    """Whether a text scores higher than all others."""
    return all(scores[index] > score for i, score in enumerate(scores) if i != index)


def margin(scores: list[float], index: int) -> float:
    """By how much a text scores higher than the best of the others; NaN without others."""
    others = [score for i, score in enumerate(scores) if i != index]
    return scores[index] - max(others, default=nan)


def best_threshold(scores: np.ndarray, labels: np.ndarray) -> float:
    """The threshold of highest accuracy, where higher scores are true; of equal ones the middle.

    Args:
        scores: (N,).
        labels: 1 for true, 0 for false, (N,).
    """
    values = np.unique(scores)
    between = (values[1:] + values[:-1]) / 2
    thresholds = np.concatenate([[-np.inf], between, [np.inf]])
    right = [np.mean((scores > threshold) == labels) for threshold in thresholds]
    best = np.flatnonzero(np.array(right) == max(right))
    return float(thresholds[best[len(best) // 2]])
