"""What may be said of a difference: better, worse, equivalent, or undecided."""

from typing import NamedTuple

from xmodal.ablation.paired import LEVEL, PairedDifference

MARGIN = 1.0  # points within which two rows count as equivalent
MOST_SEEDS = 100  # beyond which no number is named


class Verdict(NamedTuple):
    """A verdict, and what it rests on.

    Attributes:
        difference: of the row from the reference.
        word: 'better', 'worse', 'equivalent' or 'undecided'.
        half_width: of the interval.
        margin: points within which rows are equivalent.
        more_seeds: how many more are expected to decide; None if decided, or if no number up to
            ``MOST_SEEDS`` does.
    """

    difference: PairedDifference
    word: str
    half_width: float
    margin: float
    more_seeds: int | None

    @property
    def is_decided(self) -> bool:
        """Whether it says more than 'undecided'."""
        return self.word != 'undecided'

    def __str__(self) -> str:
        if self.word == 'equivalent':
            return f'equivalent within {self.margin:g}'
        if self.is_decided:
            return self.word
        if len(self.difference.by_seed) < 2:
            return 'undecided: one seed says nothing of the next'
        if self.more_seeds is None:
            return 'undecided: more seeds do not decide it, a larger test set would'
        seeds = 'seed' if self.more_seeds == 1 else 'seeds'
        return f'undecided: about {self.more_seeds} more {seeds} would decide'


def judge(difference: PairedDifference, margin: float = MARGIN, level: float = LEVEL) -> Verdict:
    """The verdict of an interval.

    Better or worse: the interval excludes 0. Equivalent: it lies within the margin and holds 0.

    Args:
        difference: the difference.
        margin: in points.
        level: share of intervals that miss the true difference.
    """
    half_width = difference.half_width(level)
    word = _word(difference.mean, half_width, margin)
    more = None
    if word == 'undecided' and len(difference.by_seed) > 1:
        more = _more_seeds(difference, margin, level)
    return Verdict(difference, word, half_width, margin, more)


def _word(mean: float, half_width: float, margin: float) -> str:
    if abs(mean) > half_width:
        return 'better' if mean > 0 else 'worse'
    return 'equivalent' if abs(mean) + half_width <= margin else 'undecided'


def _more_seeds(difference: PairedDifference, margin: float, level: float) -> int | None:
    """If the mean and the deviations stayed as they are."""
    n = len(difference.by_seed)
    for seeds in range(n + 1, MOST_SEEDS + 1):
        if _word(difference.mean, difference.half_width(level, seeds), margin) != 'undecided':
            return seeds - n
    return None
