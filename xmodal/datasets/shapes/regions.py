"""Regions of a scene, as from a detector: boxes, and a feature of the pixels in each box.

The detector is not a neural backbone. Its boxes are the true boxes with noise. Its features depend
only on the pixels: a classic descriptor from which shape, colour, size and texture can be read
linearly.
"""

import cv2
import numpy as np

from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.shapes.record import Record

REGIONS = 8  # per scene: its two to six objects, and boxes around and between them
_JITTER = 0.08  # largest shift of an edge of a box, as a share of the object's side
_CROP, _CELLS, _ORIENTATIONS, _COLOUR_BINS = 32, 4, 9, 4
FEATURE_DIMS = _CELLS**2 * _ORIENTATIONS + _COLOUR_BINS**3 + _CELLS**2 * 3 + 3


Region = tuple[int, int, int, int]  # x1, y1, x2, y2 in pixels, the last two exclusive


def propose_regions(split: str, record: Record) -> list[Region]:
    """A noisy box for each object and others around and between them, in random order."""
    rng = np.random.default_rng(derive_seed('regions', split, record.scene))
    regions = [_jitter(box, record.size, _JITTER, rng) for box in record.boxes]
    while len(regions) < REGIONS:
        if rng.random() < 0.5:  # part of an object
            box = _jitter(record.boxes[rng.integers(len(record.boxes))], record.size, 0.6, rng)
        else:
            side = rng.uniform(0.15, 0.5, 2) * record.size
            x, y = rng.uniform(0, record.size - side)
            box = _clip(x, y, x + side[0], y + side[1], record.size)
        regions.append(box)
    return [regions[index] for index in rng.permutation(REGIONS)]


def _jitter(
    box: tuple[int, int, int, int], size: int, share: float, rng: np.random.Generator
) -> Region:
    """Corners of a box x, y, width, height, each edge moved by up to a share of the side."""
    x, y, width, height = box
    left, top, right, bottom = rng.uniform(-share, share, 4) * (width, height, width, height)
    return _clip(x + left, y + top, x + width + right, y + height + bottom, size)


def _clip(x1: float, y1: float, x2: float, y2: float, size: int) -> Region:
    """Corners in whole pixels inside the image, at least two pixels wide and high."""
    left, top = (min(max(round(float(edge)), 0), size - 2) for edge in (x1, y1))
    right, bottom = (round(float(edge)) for edge in (x2, y2))
    return left, top, min(max(right, left + 2), size), min(max(bottom, top + 2), size)


def describe_regions(image: np.ndarray, regions: list[Region]) -> np.ndarray:
    """Features of regions, from the pixels in their boxes.

    Each crop is resized to 32 × 32. Its feature is a histogram of oriented gradients (4 × 4 cells,
    9 orientations), a histogram of colours (4 × 4 × 4, over all pixels), the mean colour of each of
    the 4 × 4 cells, and the width, height and area of the box as shares of the image.

    Args:
        image: uint8 RGB, (H, W, 3).
        regions: R regions.

    Returns:
        float32 in 0…1, (R, ``FEATURE_DIMS``).
    """
    height, width = image.shape[:2]
    boxes = np.array(regions, np.float32)
    sides = (boxes[:, 2:] - boxes[:, :2]) / (width, height)
    crops = np.stack(
        [
            cv2.resize(image[y1:y2, x1:x2], (_CROP, _CROP), interpolation=cv2.INTER_LINEAR)
            for x1, y1, x2, y2 in regions
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
    """Histogram of gradient directions in each cell, (R, cells² · orientations).

    Opposite directions are nearly one orientation (docs/differences.md).
    """
    grey = crops.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    dy, dx = np.gradient(grey, axis=(1, 2))
    orientation = (np.arctan2(dy, dx) * (_ORIENTATIONS / np.pi)).astype(np.int64) % _ORIENTATIONS
    bins = _by_cell(orientation) + _ORIENTATIONS * _cell_indices(len(crops))
    strength = _by_cell(np.sqrt(dx**2 + dy**2))
    count = len(crops) * _CELLS**2 * _ORIENTATIONS
    histograms = np.bincount(bins.ravel(), strength.ravel(), count).reshape(len(crops), -1)
    # The square root of shares gives a Hellinger kernel. The constant keeps the noise of an empty
    # background small.
    return np.sqrt(histograms / (histograms.sum(1, keepdims=True) + _CROP**2))


def _cell_indices(crops: int) -> np.ndarray:
    """A different index for each cell of each crop, (R, cells, 1, cells, 1)."""
    return np.arange(crops * _CELLS**2).reshape(crops, _CELLS, 1, _CELLS, 1)


def _colour_histograms(crops: np.ndarray) -> np.ndarray:
    """The square root of the share of pixels in each bin of the colour cube, (R, bins³)."""
    red, green, blue = np.moveaxis(crops // (256 // _COLOUR_BINS), 3, 0)
    bins = (red * _COLOUR_BINS + green) * _COLOUR_BINS + blue  # at most 63, which fits uint8
    bins = bins + _COLOUR_BINS**3 * np.arange(len(crops))[:, None, None]
    counts = np.bincount(bins.ravel(), minlength=len(crops) * _COLOUR_BINS**3)
    return np.sqrt(counts.reshape(len(crops), -1) / _CROP**2)
