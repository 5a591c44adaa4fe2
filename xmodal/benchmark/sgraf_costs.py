"""Costs of scoring images and captions with SAF and SGR, and their extrapolation to COCO 5K."""

import math
import statistics
from dataclasses import dataclass

import torch

WIDTH, REGIONS, DIM = 1024, 36, 256  # of tokens, per image, of similarity vectors
COCO_IMAGES, COCO_CAPTIONS, COCO_WORDS = 5000, 25000, 332427


def coco_lengths(count: int) -> list[int]:
    """Returns lengths, with <start> and <end>, that are distributed as those of COCO's captions.

    Their mean is 13.3, 99 % are at most 22 and all at most 52. They are even steps of the
    distribution of a log-normal over 8 … 52 with these properties, shuffled.
    """
    lengths = range(8, 53)
    density = [math.exp(-((math.log(length - 7) - 1.6) ** 2) / (2 * 0.4**2)) for length in lengths]
    cumulated = torch.tensor(density).cumsum(0) / sum(density)
    steps = (torch.arange(count) + 0.5) / count
    return (8 + torch.searchsorted(cumulated, steps))[torch.randperm(count)].tolist()


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
        return statistics.median(self.per_word) * COCO_WORDS / COCO_CAPTIONS * 1e6

    @property
    def coco_seconds(self) -> float:
        """Seconds for COCO 5K."""
        once = self.image_seconds + self.caption_seconds
        per_word = (statistics.median(self.seconds) - once) / (self.num_images * sum(self.lengths))
        return (
            per_word * COCO_IMAGES * COCO_WORDS
            + self.image_seconds * COCO_IMAGES / self.num_images
            + self.caption_seconds * COCO_CAPTIONS / len(self.lengths)
        )

    @property
    def flop_rate(self) -> float:
        """FLOP/s, counting the operations of this implementation."""
        return self.num_images * self._image_flops() / statistics.median(self.seconds)

    def speed_up_over(self, other: 'ScoringCost') -> float:
        """Returns the median of the ratios of the rounds."""
        pairs = zip(other.per_word, self.per_word, strict=True)
        return statistics.median(theirs / ours for theirs, ours in pairs)

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
