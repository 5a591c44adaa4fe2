"""Scenes of the embedded world: a few objects on a light background, sampled from a seed."""

from dataclasses import dataclass, fields, replace
from itertools import product
from math import hypot
from typing import Protocol

import numpy as np

from xmodal.datasets.shapes.pick import pick

SPLITS = ('train', 'val', 'test')
SHAPES = ('disc', 'square', 'triangle', 'ring', 'cross', 'diamond', 'star', 'bar')
COLOURS = {  # RGB
    'red': (214, 39, 40),
    'orange': (255, 140, 20),
    'yellow': (240, 210, 30),
    'lime': (160, 225, 40),
    'green': (30, 140, 60),
    'teal': (0, 130, 135),
    'cyan': (60, 205, 235),
    'blue': (40, 80, 215),
    'navy': (15, 25, 95),
    'purple': (120, 50, 180),
    'magenta': (215, 30, 165),
    'pink': (250, 160, 195),
    'brown': (125, 75, 40),
    'olive': (130, 130, 20),
    'grey': (130, 130, 130),
    'black': (25, 25, 25),
}
SIZES = {'small': (0.105, 0.12), 'large': (0.165, 0.19)}  # radius, share of the image's side
TEXTURES = ('solid', 'striped', 'dotted')
OPPOSITE = {'left of': 'right of', 'right of': 'left of', 'above': 'below', 'below': 'above'}
DIRECTIONS = tuple(OPPOSITE)

# A direction holds along the axis on which two objects are at least this many times further apart,
# so that no relation is ambiguous.
CLEAR = 1.5
# Shares of: scenes of four objects or more in which some look alike; scenes with an odd index that
# are counterparts of the scene before; test scenes that must show a held-out composition.
ALIKE_SHARE = 0.4
COUNTERPART_SHARE = 0.4
HELD_OUT_SHARE = 0.5


@dataclass(frozen=True)
class SceneObject:
    """One object of a scene; x, y and radius are shares of the image's side."""

    shape: str
    colour: str
    size: str
    texture: str
    x: float
    y: float
    radius: float

    def __repr__(self) -> str:
        """Seeds of annotations are derived from this text: changing it changes every build."""
        values = ', '.join(f'{field.name}={getattr(self, field.name)!r}' for field in fields(self))
        return f'Thing({values})'


@dataclass(frozen=True)
class Scene:
    """Objects on a background; up to three of them may have the same colour and shape.

    Attributes:
        index: index in the split.
        objects: two to six objects.
        ground: RGB of the background.
    """

    index: int
    objects: tuple[SceneObject, ...]
    ground: tuple[int, int, int]

    def __repr__(self) -> str:
        """Seeds of annotations are derived from this text: changing it changes every build."""
        return f'Scene(index={self.index!r}, things={self.objects!r}, ground={self.ground!r})'

    def unique_objects(self) -> list[SceneObject]:
        """The objects whose colour and shape no other object has."""
        kinds = [(obj.shape, obj.colour) for obj in self.objects]
        return [
            obj for obj, kind in zip(self.objects, kinds, strict=True) if kinds.count(kind) == 1
        ]


def direction(a: SceneObject, b: SceneObject) -> str | None:
    """Where ``a`` is, seen from ``b``; None when neither axis is clearly larger."""
    dx, dy = a.x - b.x, a.y - b.y
    if abs(dx) >= CLEAR * abs(dy):
        return 'left of' if dx < 0 else 'right of'
    if abs(dy) >= CLEAR * abs(dx):
        return 'above' if dy < 0 else 'below'
    return None


def relation_holds(name: str, obj: SceneObject, *others: SceneObject) -> bool:
    """Whether a relation holds: a direction seen from one other object, or between two."""
    if name == 'between':
        first, second = (direction(obj, other) for other in others)
        return first is not None and OPPOSITE[first] == second
    return direction(obj, others[0]) == name


class Kind(Protocol):
    """Anything with a shape and a colour: an object, or a description of one."""

    @property
    def shape(self) -> str: ...

    @property
    def colour(self) -> str: ...


def is_held_out(a: Kind, name: str, b: Kind) -> bool:
    """Whether "``a`` is ``name`` ``b``" is a composition held out from training.

    For every direction, one of thirty-two kinds (colour × shape) never has that direction from
    another object in training. The reverse wording is held out as well: "``b`` is right of ``a``"
    for "``a`` is left of ``b``".
    """
    return _is_barred(a, name) or _is_barred(b, OPPOSITE[name])


def may_be_said(a: Kind, name: str, b: Kind) -> bool:
    """Whether neither a composition nor its opposite is held out: training has both answers."""
    return not (is_held_out(a, name, b) or is_held_out(a, OPPOSITE[name], b))


def _is_barred(kind: Kind, name: str) -> bool:
    colour, shape = list(COLOURS).index(kind.colour), SHAPES.index(kind.shape)
    return (colour + 5 * shape + 8 * DIRECTIONS.index(name)) % 32 == 0


def has_held_out_composition(scene: Scene) -> bool:
    """Whether a scene shows a composition that is held out from training."""
    pairs = ((a, direction(a, b), b) for a, b in product(scene.objects, repeat=2) if a is not b)
    return any(name is not None and is_held_out(a, name, b) for a, name, b in pairs)


def sample_scene(seed: int, split: str, index: int) -> Scene:
    """Samples a scene by its index in a split; the same arguments give the same scene.

    Some scenes with an odd index are counterparts of the scene before: nearly the same words
    describe both, but what is true of one is false of the other. Training and validation scenes
    show no composition of :func:`is_held_out`; of the test scenes that are no counterparts, half
    show at least one.
    """
    rng = np.random.default_rng([seed, SPLITS.index(split), index])
    if index % 2 and rng.random() < COUNTERPART_SHARE:
        original = sample_scene(seed, split, index - 1)
        for scene in _counterparts(original, index, sample_ground(rng), rng):
            is_different = scene.objects != original.objects  # not if all have one colour
            is_allowed = split == 'test' or not has_held_out_composition(scene)
            if is_different and is_allowed and _is_describable(scene):
                return scene
    needs_held_out = split == 'test' and rng.random() < HELD_OUT_SHARE
    kinds = _sample_kinds(rng)
    while True:
        scene = _arrange(kinds, index, rng)
        is_valid = scene is not None and _is_describable(scene)
        if is_valid and has_held_out_composition(scene) == needs_held_out:
            return scene
        kinds = _sample_kinds(rng, len(kinds))


def sample_skill_scene(seed: int, index: int) -> Scene:
    """A scene for minimal pairs: five objects of which two, for odd indices three, look alike.

    No scene of a split is one of them, and none shows a held-out composition.
    """
    rng = np.random.default_rng([seed, len(SPLITS), index])
    num_alike = 2 + index % 2
    while True:
        alike, *others = _distinct_kinds(rng, 6 - num_alike)
        scene = _arrange([alike] * num_alike + others, index, rng)
        is_valid = scene is not None and _is_describable(scene)
        if is_valid and not has_held_out_composition(scene):
            return scene


def _counterparts(
    scene: Scene, index: int, ground: tuple[int, int, int], rng: np.random.Generator
) -> list[Scene]:
    """The scene rotated by 180°, and with each colour moved to the next object, in random order."""
    objects = scene.objects
    rotated = tuple(replace(obj, x=1 - obj.x, y=1 - obj.y) for obj in objects)
    recoloured = tuple(replace(obj, colour=objects[i - 1].colour) for i, obj in enumerate(objects))
    scenes = [Scene(index, rotated, ground), Scene(index, recoloured, ground)]
    return scenes[::-1] if rng.random() < 0.5 else scenes


def sample_ground(rng: np.random.Generator) -> tuple[int, int, int]:
    """A light background, RGB."""
    red, green, blue = (int(value) for value in rng.integers(205, 251, 3))
    return red, green, blue


def _sample_kinds(rng: np.random.Generator, count: int | None = None) -> list[tuple[str, str]]:
    """Shape and colour of each object, two to six of them when no count is given."""
    count = count or int(rng.integers(2, 7))
    kinds = _distinct_kinds(rng, count)
    if count >= 4 and rng.random() < ALIKE_SHARE:
        num_alike = int(rng.integers(2, count - 1)) if count == 5 else 2
        kinds[:num_alike] = [kinds[0]] * num_alike
    return kinds


def _distinct_kinds(rng: np.random.Generator, count: int) -> list[tuple[str, str]]:
    indices = rng.permutation(len(SHAPES) * len(COLOURS))[:count]
    return [(SHAPES[i % len(SHAPES)], list(COLOURS)[i // len(SHAPES)]) for i in indices]


def _is_describable(scene: Scene) -> bool:
    """Whether some object of a unique colour and shape is in a clear direction from another one."""
    unique = scene.unique_objects()
    return any(direction(a, b) for a in unique for b in unique if a is not b)


def _arrange(kinds: list[tuple[str, str]], index: int, rng: np.random.Generator) -> Scene | None:
    """Gives each kind a size, a texture and a position; None when there was no space for one."""
    objects: list[SceneObject] = []
    for shape, colour in kinds:
        obj = _sample_object(rng, objects, shape, colour)
        if obj is None:
            return None
        objects.append(obj)
    return Scene(index, tuple(objects), sample_ground(rng))


def _sample_object(
    rng: np.random.Generator, others: list[SceneObject], shape: str, colour: str
) -> SceneObject | None:
    """An object that overlaps no other, or None after twenty tries."""
    size, texture = pick(tuple(SIZES), rng), pick(TEXTURES, rng)
    for _ in range(20):
        radius = float(rng.uniform(*SIZES[size]))
        x, y = rng.uniform(radius + 0.01, 0.99 - radius, 2).tolist()
        if all(hypot(x - o.x, y - o.y) > radius + o.radius + 0.01 for o in others):
            return SceneObject(shape, colour, size, texture, x, y, radius)
    return None
