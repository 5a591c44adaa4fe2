"""Pictures of single things in one folder a class, for zero-shot classification."""

from itertools import product
from pathlib import Path

import cv2
import numpy as np

from xmodal.datasets.shapes.draw import draw_scene
from xmodal.datasets.shapes.scene import COLOURS, SHAPES, SIZES, TEXTURES, Scene, Thing
from xmodal.files import write_json

PICTURES = 8  # of a class
CLASSES = tuple(f'{colour} {shape}' for colour, shape in product(COLOURS, SHAPES))


def write_class_folders(root: Path, seed: int, size: int = 96) -> None:
    """``images/COLOUR_SHAPE/0.png`` …, and ``class_names.json``: a name a folder.

    A class is a colour and a shape, 128 in all; size, texture, place and ground are drawn. A scene
    shows two things at least and is never of one class: what training has seen is what the words
    mean, not the task. The same arguments give the same pictures.

    Args:
        root: folder to write to.
        seed: of everything drawn.
        size: side of an image, in pixels.
    """
    for number, name in enumerate(CLASSES):
        folder = root / 'images' / _folder(name)
        folder.mkdir(parents=True, exist_ok=True)
        for picture in range(PICTURES):
            scene = _draw(np.random.default_rng([seed, number, picture]), name)
            image, _ = draw_scene(scene, size)
            file = folder / f'{picture}.png'
            if not cv2.imwrite(str(file), image[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 3]):
                raise OSError(f'{file} could not be written: is the disk full?')
    write_json(root / 'class_names.json', {_folder(name): name for name in CLASSES}, indent=1)


def _folder(name: str) -> str:
    return name.replace(' ', '_')


def _draw(rng: np.random.Generator, name: str) -> Scene:
    """A scene of one thing."""
    colour, shape = name.split()
    extent = SIZES[list(SIZES)[rng.integers(len(SIZES))]]
    radius = float(rng.uniform(*extent))
    x, y = rng.uniform(radius + 0.01, 0.99 - radius, 2).tolist()
    texture = TEXTURES[rng.integers(len(TEXTURES))]
    red, green, blue = (int(value) for value in rng.integers(205, 251, 3))
    return Scene(0, (Thing(shape, colour, '', texture, x, y, radius),), (red, green, blue))
