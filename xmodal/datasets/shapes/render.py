"""Renders scenes with OpenCV."""

import math
from functools import lru_cache

import cv2
import numpy as np

from xmodal.datasets.shapes.scene import COLOURS, Scene, SceneObject

_SCALE = 4  # objects are rendered larger and shrunk, for smooth edges of all shapes


def render_scene(scene: Scene, size: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Renders a scene.

    Args:
        scene: the scene.
        size: side of the image, in pixels.

    Returns:
        The image, uint8 RGB (size, size, 3), and the mask of each object, bool (size, size).
    """
    image = np.full((size, size, 3), scene.ground, np.float32)
    masks = []
    for obj in scene.objects:
        window, coverage, inside = _coverage(obj, size)
        paint = _paint(obj, inside, size)
        image[window] += coverage[..., None] * (paint - image[window])
        mask = np.zeros((size, size), bool)
        mask[window] = coverage >= 0.5
        masks.append(mask)
    return image.round().astype(np.uint8), masks


def _coverage(obj: SceneObject, size: int) -> tuple[tuple[slice, slice], np.ndarray, np.ndarray]:
    """The window of pixels around an object, its coverage of each pixel, and its inside.

    The inside is the object without its outline. Both arrays are float32, of the window's size.
    """
    left, top = (int((centre - obj.radius) * size) - 1 for centre in (obj.x, obj.y))
    left, top = max(left, 0), max(top, 0)
    side = min(math.ceil(2 * obj.radius * size) + 3, size - left, size - top)
    mask = np.zeros((side * _SCALE, side * _SCALE), np.uint8)
    centre = (np.array([obj.x, obj.y]) * size - (left, top)) * _SCALE
    radius = obj.radius * size * _SCALE
    if obj.shape in ('disc', 'ring'):
        cv2.circle(mask, _pixel(centre), round(radius), 255, -1)
        if obj.shape == 'ring':
            cv2.circle(mask, _pixel(centre), round(0.5 * radius), 0, -1)
    else:
        for corners in _polygons(obj.shape):
            cv2.fillPoly(mask, [np.round(centre + radius * corners).astype(np.int32)], 255)
    outline = np.ones((2 * _SCALE + 1, 2 * _SCALE + 1), np.uint8)
    window = (slice(top, top + side), slice(left, left + side))
    coverage, inside = (
        cv2.resize(m, (side, side), interpolation=cv2.INTER_AREA).astype(np.float32) / 255
        for m in (mask, cv2.erode(mask, outline))
    )
    return window, coverage, inside


def _paint(obj: SceneObject, inside: np.ndarray, size: int) -> np.ndarray:
    """The object's colour, with its texture in white on the inside, (side, side, 3)."""
    texture = _texture(obj.texture, size)[: len(inside), : len(inside)]
    white = (inside * texture)[..., None]
    return white * 255 + (1 - white) * np.array(COLOURS[obj.colour], np.float32)


@lru_cache
def _texture(name: str, size: int) -> np.ndarray:
    """Coverage of each pixel by the texture, in an image full of it, (size, size)."""
    period = size / 16
    y, x = (np.mgrid[: size * _SCALE, : size * _SCALE] + 0.5) / _SCALE
    covered = np.zeros(x.shape, np.float32)
    if name == 'striped':
        covered[(x + y) % period < 0.35 * period] = 1
    elif name == 'dotted':
        # Every second row of dots is shifted by half a period, as on printed cloth.
        x = x + (y // period % 2) * period / 2
        covered[np.hypot(x % period - period / 2, y % period - period / 2) < 0.36 * period] = 1
    return cv2.resize(covered, (size, size), interpolation=cv2.INTER_AREA)


def _polygons(shape: str) -> list[np.ndarray]:
    """Corners of a shape within the unit circle; a cross is two bars."""
    if shape == 'square':
        return [_rectangle(0.7, 0.7)]
    if shape == 'bar':
        return [_rectangle(0.94, 0.33)]
    if shape == 'cross':
        return [_rectangle(0.95, 0.3), _rectangle(0.3, 0.95)]
    if shape == 'triangle':
        return [np.array([(0, -1), (0.86, 0.5), (-0.86, 0.5)])]
    if shape == 'diamond':
        return [np.array([(0, -1), (0.66, 0), (0, 1), (-0.66, 0)])]
    angles = np.arange(10) * np.pi / 5
    radii = np.where(np.arange(10) % 2, 0.42, 1.0)
    return [np.stack([radii * np.sin(angles), -radii * np.cos(angles)], 1)]


def _rectangle(width: float, height: float) -> np.ndarray:
    return np.array([(-width, -height), (width, -height), (width, height), (-width, height)])


def _pixel(point: np.ndarray) -> tuple[int, int]:
    return round(float(point[0])), round(float(point[1]))
