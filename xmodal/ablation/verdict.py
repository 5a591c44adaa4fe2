"""What may be said of a difference: better, worse, equivalent, or undecided."""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from xmodal.ablation.paired import LEVEL, PairedDifference

MARGIN = 1.0  # points within which two rows count as equivalent
MOST_SEEDS = 100  # more, beyond which no number is named


class Verdict(NamedTuple):
    """A verdict, and what it rests on.

    Attributes:
        difference: of the row from the reference.
        word: 'better', 'worse', 'equivalent' or 'undecided'.
        half_width: of the interval.
        margin: points within which rows are equivalent.
        detectable: the least true difference that the interval excludes 0 for, four times out of
            five.
        more_seeds: how many more are expected to decide; ``inf`` if more than ``MOST_SEEDS``; None
            if decided, or if no number does.
    """

    difference: PairedDifference
    word: str
    half_width: float
    margin: float
    detectable: float
    more_seeds: float | None

    @property
    def is_decided(self) -> bool:
        """Whether it says more than 'undecided'."""
        return self.word != 'undecided'

    @property
    def interval(self) -> str:
        """From where to where the interval reaches."""
        mean = self.difference.mean
        return f'{mean - self.half_width:+.2f} … {mean + self.half_width:+.2f}'

    def __str__(self) -> str:
        if self.word == 'equivalent':
            return f'equivalent within {self.margin:g}'
        if self.is_decided:
            return self.word
        if self.difference.of_given:
            return 'undecided: a larger test set would decide'
        if len(self.difference.by_seed) < 2:
            return 'undecided: one seed says nothing of the next'
        if self.more_seeds is None:
            return 'undecided: more seeds do not decide it, a larger test set would'
        if self.more_seeds == inf:
            return f'undecided: more than {MOST_SEEDS} more seeds would decide'
        seeds = 'seed' if self.more_seeds == 1 else 'seeds'
        return f'undecided: about {self.more_seeds} more {seeds} would decide'


def judge(
    difference: PairedDifference,
    margin: float = MARGIN,
    level: float = LEVEL,
    later: Sequence[tuple[int, float]] = (),
) -> Verdict:
    """The verdict of an interval.

    Better or worse: the interval excludes 0. Equivalent: it lies within the margin and holds 0.

    Args:
        difference: the difference.
        margin: in points.
        level: share of intervals that miss the true difference.
        later: looks that are still to come, each a number of seeds and its level.
    """
    half_width = difference.half_width(level)
    word = _word(difference.mean, half_width, margin)
    more = None
    if word == 'undecided' and len(difference.by_seed) > 1:
        more = _more_seeds(difference, margin, _to_come(len(difference.by_seed), level, later))
    return Verdict(difference, word, half_width, margin, difference.detectable_at(level), more)


def _word(mean: float, half_width: float, margin: float) -> str:
    if abs(mean) > half_width:
        return 'better' if mean > 0 else 'worse'
    return 'equivalent' if abs(mean) + half_width <= margin else 'undecided'


def _to_come(
    seeds: int, level: float, later: Sequence[tuple[int, float]]
) -> list[tuple[float, float]]:
    """The later looks, and beyond them each number of seeds with the level of the last look."""
    last, level = later[-1] if later else (seeds, level)
    beyond = [*range(last + 1, seeds + MOST_SEEDS + 1), inf]
    return [*later, *((more, level) for more in beyond)]


def _more_seeds(
    difference: PairedDifference, margin: float, looks: Sequence[tuple[float, float]]
) -> float | None:
    """If the mean and the deviations stayed as they are."""
    for seeds, level in looks:
        if _word(difference.mean, difference.half_width(level, seeds), margin) != 'undecided':
            return seeds - len(difference.by_seed)
    return None
