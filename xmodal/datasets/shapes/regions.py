"""Regions of a scene, as a detector would give them: boxes, and a feature of the pixels in each.

The detector is no network. Where it looks follows from the true boxes, loosely; what it sees are
the pixels alone, through a classic descriptor from which shape, colour, size and texture can be
read linearly.
"""

from typing import NamedTuple

import cv2
import numpy as np

from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.shapes.record import Record

REGIONS = 8  # of every scene: its two to six things, and places between them
_JITTER = 0.08  # an edge of a box is off by at most this share of the thing's side
_CROP, _CELLS, _ORIENTATIONS, _COLOUR_BINS = 32, 4, 9, 4
FEATURE_DIMS = _CELLS**2 * _ORIENTATIONS + _COLOUR_BINS**3 + _CELLS**2 * 3 + 3


class Region(NamedTuple):
    """A box that a detector proposes.

    Attributes:
        box: x1, y1, x2, y2 in pixels, the last two exclusive.
        thing: place of the thing it is meant to show in the scene, or None.
    """

    box: tuple[int, int, int, int]
    thing: int | None


def propose_regions(split: str, record: Record) -> list[Region]:
    """A box for each thing, a little off, others around and between them; in random order."""
    rng = np.random.default_rng(derive_seed('regions', split, record.scene))
    regions = [
        Region(_jittered(box, record.size, _JITTER, rng), place)
        for place, box in enumerate(record.boxes)
    ]
    while len(regions) < REGIONS:
        if rng.random() < 0.5:  # part of a thing
            box = _jittered(record.boxes[rng.integers(len(record.boxes))], record.size, 0.6, rng)
        else:
            side = rng.uniform(0.15, 0.5, 2) * record.size
            x, y = rng.uniform(0, record.size - side)
            box = _clipped(x, y, x + side[0], y + side[1], record.size)
        regions.append(Region(box, None))
    return [regions[place] for place in rng.permutation(REGIONS)]


def _jittered(
    box: tuple[int, int, int, int], size: int, share: float, rng: np.random.Generator
) -> tuple[int, int, int, int]:
    """x, y, width, height to corners, each edge moved by up to a share of the side."""
    x, y, width, height = box
    left, top, right, bottom = rng.uniform(-share, share, 4) * (width, height, width, height)
    return _clipped(x + left, y + top, x + width + right, y + height + bottom, size)


def _clipped(x1: float, y1: float, x2: float, y2: float, size: int) -> tuple[int, int, int, int]:
    """Whole pixels inside the image, at least two each way."""
    left, top = (min(max(round(float(edge)), 0), size - 2) for edge in (x1, y1))
    right, bottom = (round(float(edge)) for edge in (x2, y2))
    return left, top, min(max(right, left + 2), size), min(max(bottom, top + 2), size)


def describe_regions(image: np.ndarray, regions: list[Region]) -> np.ndarray:
    """Features of regions, from the pixels in their boxes.

    Each crop is resized to 32 × 32. Its feature is a histogram of oriented gradients (4 × 4 cells,
    9 orientations), one of colours (4 × 4 × 4, all pixels), the mean colour of each of the 4 × 4
    cells, and the box's width, height and area as shares of the image's.

    Args:
        image: uint8 RGB, (H, W, 3).
        regions: R of them.

    Returns:
        float32 in 0…1, (R, ``FEATURE_DIMS``).
    """
    height, width = image.shape[:2]
    boxes = np.array([region.box for region in regions], np.float32)
    sides = (boxes[:, 2:] - boxes[:, :2]) / (width, height)
    crops = np.stack(
        [
            cv2.resize(image[y1:y2, x1:x2], (_CROP, _CROP), interpolation=cv2.INTER_LINEAR)
            for (x1, y1, x2, y2), _ in regions
        ]
    )
    parts = [
        _gradient_histograms(crops),
        _colour_histograms(crops),
        _by_cell(crops).mean((2, 4)).reshape(len(crops), -1) / 255,
        sides,
        sides.prod(1, keepdims=True),
    ]
    return np.concatenate(parts, 1).astype(np.float32)


def _by_cell(crops: np.ndarray) -> np.ndarray:
    """(R, 32, 32, …) as (R, cells, 8, cells, 8, …)."""
    side = _CROP // _CELLS
    return crops.reshape(len(crops), _CELLS, side, _CELLS, side, *crops.shape[3:])


def _gradient_histograms(crops: np.ndarray) -> np.ndarray:
    """How much edge of each direction there is in each cell, (R, cells² · orientations)."""
    grey = crops.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    dy, dx = np.gradient(grey, axis=(1, 2))
    orientation = (np.arctan2(dy, dx) * (_ORIENTATIONS / np.pi)).astype(np.int64) % _ORIENTATIONS
    bins = _by_cell(orientation) + _ORIENTATIONS * _cell_numbers(len(crops))
    strength = _by_cell(np.sqrt(dx**2 + dy**2))
    count = len(crops) * _CELLS**2 * _ORIENTATIONS
    histograms = np.bincount(bins.ravel(), strength.ravel(), count).reshape(len(crops), -1)
    # The root of shares: a Hellinger kernel. The floor keeps the noise of an empty ground small.
    return np.sqrt(histograms / (histograms.sum(1, keepdims=True) + _CROP**2))


def _cell_numbers(crops: int) -> np.ndarray:
    """The number of each cell of each crop, (R, cells, 1, cells, 1)."""
    return np.arange(crops * _CELLS**2).reshape(crops, _CELLS, 1, _CELLS, 1)


def _colour_histograms(crops: np.ndarray) -> np.ndarray:
    """The root of the share of pixels in each bin of the colour cube, (R, bins³)."""
    red, green, blue = np.moveaxis(crops // (256 // _COLOUR_BINS), 3, 0)
    bins = (red * _COLOUR_BINS + green) * _COLOUR_BINS + blue  # 63 at most: uint8 will do
    bins = bins + _COLOUR_BINS**3 * np.arange(len(crops))[:, None, None]
    counts = np.bincount(bins.ravel(), minlength=len(crops) * _COLOUR_BINS**3)
    return np.sqrt(counts.reshape(len(crops), -1) / _CROP**2)
