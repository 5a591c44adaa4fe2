"""Costs of scoring images and captions with SAF and SGR, and their extrapolation to test sets."""

import math
import statistics
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import torch

from xmodal.benchmark.timing import ratios_by_round

WIDTH, REGIONS, DIM = 1024, 36, 256  # of tokens, per image, of similarity vectors
# Shortest and longest caption; shift, mean and deviation of a log-normal distribution.
CAPTIONS = {'f30k': (4, 77, 3, 2.223, 0.45), 'coco': (8, 52, 7, 1.6, 0.4)}
Seconds = TypeVar('Seconds', float, np.ndarray)  # of one round, or of several


class SetSize(NamedTuple):
    """The size of a test set; words are those of all captions, with <start> and <end>."""

    images: int
    captions: int
    words: int

    @property
    def pairs(self) -> int:
        """Pairs of an image and a word."""
        return self.images * self.words


TEST_SETS = {
    'Flickr30K': SetSize(1000, 5000, 77550),
    'COCO 1K': SetSize(1000, 5000, 66485),  # one of five folds
    'COCO 5K': SetSize(5000, 25000, 332427),
}


def caption_lengths(data: str, count: int) -> list[int]:
    """Returns lengths, with <start> and <end>, distributed as those of a test set's captions.

    COCO's mean is 13.3, 99 % are at most 22 and all at most 52; Flickr30K's are 15.5, 35 and 77.
    They are even steps of the distribution of a log-normal with these properties, shuffled.

    Args:
        data: 'f30k' or 'coco'.
        count: number of captions.
    """
    shortest, longest, shift, mean, deviation = CAPTIONS[data]
    density = [
        math.exp(-((math.log(length - shift) - mean) ** 2) / (2 * deviation**2))
        for length in range(shortest, longest + 1)
    ]
    cumulated = torch.tensor(density).cumsum(0) / sum(density)
    steps = (torch.arange(count) + 0.5) / count
    return (shortest + torch.searchsorted(cumulated, steps))[torch.randperm(count)].tolist()


def extrapolate(
    seconds: Seconds,
    image_seconds: Seconds,
    caption_seconds: Seconds,
    measured: SetSize,
    target: SetSize,
    shard: int | None = None,
) -> Seconds:
    """Extrapolates the seconds of scoring to a test set.

    What depends on an image alone, on a caption alone and on a pair of an image and a word is
    weighted by its number there.

    Args:
        seconds: of scoring ``measured``, with the two below.
        image_seconds: of what depends on an image alone, for all images of ``measured``.
        caption_seconds: of what depends on a caption alone, for all its captions.
        measured: what was scored at once.
        target: the test set.
        shard: images and captions of a shard, where the two are computed anew for every shard;
            None where they are computed once.
    """
    pair_seconds = (seconds - image_seconds - caption_seconds) / measured.pairs
    per_image, per_caption = image_seconds / measured.images, caption_seconds / measured.captions
    times_an_image = target.captions / shard if shard else 1
    times_a_caption = target.images / shard if shard else 1
    return (
        pair_seconds * target.pairs
        + per_image * target.images * times_an_image
        + per_caption * target.captions * times_a_caption
    )


@dataclass
class ScoringCost:
    """The measured cost of one implementation.

    Attributes:
        reasoning: 'SAF' or 'SGR'.
        pooling: 'self-attention' or 'T-EMDE'.
        dtype: number format of the products; None for the literal loop.
        num_images: images that were scored with every caption.
        lengths: lengths of the captions.
        seconds: of each round.
        image_seconds: seconds of what is computed once per image, for all images; 0 for the literal
            loop, which computes everything for every shard.
        caption_seconds: seconds of what is computed once per caption, for all captions.
    """

    reasoning: str
    pooling: str
    dtype: torch.dtype | None
    num_images: int
    lengths: list[int]
    seconds: list[float]
    image_seconds: float
    caption_seconds: float

    @property
    def per_word(self) -> list[float]:
        """Seconds per pair of an image and a word, of each round."""
        return [value / (self.num_images * sum(self.lengths)) for value in self.seconds]

    @property
    def per_million_pairs(self) -> float:
        """Seconds for a million pairs with captions of COCO's mean length."""
        coco = TEST_SETS['COCO 5K']
        return statistics.median(self.per_word) * coco.words / coco.captions * 1e6

    @property
    def coco_seconds(self) -> float:
        """Seconds for COCO 5K."""
        measured = SetSize(self.num_images, len(self.lengths), sum(self.lengths))
        seconds = statistics.median(self.seconds), self.image_seconds, self.caption_seconds
        return extrapolate(*seconds, measured, TEST_SETS['COCO 5K'])

    @property
    def flop_rate(self) -> float:
        """FLOP/s, counting the operations of this implementation."""
        return self.num_images * self._image_flops() / statistics.median(self.seconds)

    def ratios_to(self, other: 'ScoringCost') -> list[float]:
        """Returns how many times as long the other took in each round."""
        return ratios_by_round(other.per_word, self.per_word)

    def _image_flops(self) -> float:
        """FLOPs of all captions with one image, without what is computed once per item."""
        flops, ours = 0.0, self.dtype is not None
        for length in self.lengths:
            flops += length * (4 * REGIONS * WIDTH + 2 * WIDTH * DIM)
            nodes = length + 1
            if self.pooling == 'self-attention':
                flops += 2 * WIDTH * DIM
            elif not ours:
                flops += 2 * 320 * DIM
            if self.reasoning == 'SAF':
                flops += 4 * nodes * DIM
            elif ours:
                flops += 2 * (4 * nodes * DIM**2 + 4 * nodes**2 * DIM)
                flops += 4 * DIM**2 + 4 * nodes * DIM
            else:
                flops += 3 * (6 * nodes * DIM**2 + 4 * nodes**2 * DIM)
        return flops
