"""Images of single objects in one folder per class, for zero-shot classification."""

from itertools import product
from pathlib import Path

import numpy as np
from tqdm import tqdm

from xmodal.datasets.image_file import write_image
from xmodal.datasets.shapes.pick import pick
from xmodal.datasets.shapes.render import render_scene
from xmodal.datasets.shapes.scene import (
    COLOURS,
    SHAPES,
    SIZES,
    TEXTURES,
    Scene,
    SceneObject,
    sample_ground,
)
from xmodal.files import write_json

IMAGES_PER_CLASS = 8
CLASSES = tuple(f'{colour} {shape}' for colour, shape in product(COLOURS, SHAPES))


def write_class_folders(root: Path, seed: int, size: int) -> None:
    """``images/COLOUR_SHAPE/0.png`` …, and ``class_names.json`` with one name per folder.

    The 128 classes are the combinations of a colour and a shape; size, texture, position and
    background are random. A training scene shows at least two objects and never belongs to one
    class: training shows the meaning of the words, not this task. The same arguments give the same
    images.

    Args:
        root: folder to write to.
        seed: seed of all random choices.
        size: side of an image, in pixels.
    """
    for class_index, name in enumerate(tqdm(CLASSES, 'drawing classes', unit='class')):
        folder = root / 'images' / _folder(name)
        folder.mkdir(parents=True, exist_ok=True)
        for image_index in range(IMAGES_PER_CLASS):
            scene = _sample_scene(np.random.default_rng([seed, class_index, image_index]), name)
            image, _ = render_scene(scene, size)
            write_image(folder / f'{image_index}.png', image)
    write_json(root / 'class_names.json', {_folder(name): name for name in CLASSES}, indent=1)


def _folder(name: str) -> str:
    return name.replace(' ', '_')


def _sample_scene(rng: np.random.Generator, name: str) -> Scene:
    """A scene with one object."""
    colour, shape = name.split()
    radius = float(rng.uniform(*pick(tuple(SIZES.values()), rng)))
    x, y = rng.uniform(radius + 0.01, 0.99 - radius, 2).tolist()
    texture = pick(TEXTURES, rng)
    scene_object = SceneObject(shape, colour, '', texture, x, y, radius)
    return Scene(0, (scene_object,), sample_ground(rng))
