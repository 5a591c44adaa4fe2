"""Scenes of the embedded world: a few objects on a light ground, drawn from a seed."""

from dataclasses import dataclass, replace
from itertools import product
from math import hypot
from typing import Protocol

import numpy as np

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

# A pair's offset counts for the axis along which it is at least this many times larger, so that no
# relation is a matter of taste.
CLEAR = 1.5
# Shares of: scenes of four things or more in which some look alike, scenes at odd places that are
# the twin of the scene before, test scenes that must hold a held-out composition.
ALIKE_SHARE = 0.4
TWIN_SHARE = 0.4
HELD_OUT_SHARE = 0.5


@dataclass(frozen=True)
class Thing:
    """One object of a scene; x, y and radius are shares of the image's side."""

    shape: str
    colour: str
    size: str
    texture: str
    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class Scene:
    """Objects on a ground; up to three of them may share colour and shape.

    Attributes:
        index: place in the split.
        things: two to six objects.
        ground: RGB of the background.
    """

    index: int
    things: tuple[Thing, ...]
    ground: tuple[int, int, int]


def direction(a: Thing, b: Thing) -> str | None:
    """Where ``a`` is, seen from ``b``; None where neither axis clearly wins."""
    dx, dy = a.x - b.x, a.y - b.y
    if abs(dx) >= CLEAR * abs(dy):
        return 'left of' if dx < 0 else 'right of'
    if abs(dy) >= CLEAR * abs(dx):
        return 'above' if dy < 0 else 'below'
    return None


def stands(name: str, thing: Thing, *others: Thing) -> bool:
    """Whether a relation holds: a direction seen from one other thing, or between two."""
    if name == 'between':
        first, second = (direction(thing, other) for other in others)
        return first is not None and OPPOSITE[first] == second
    return direction(thing, others[0]) == name


class Kind(Protocol):
    """What has a shape and a colour: a thing, or what is said of one."""

    @property
    def shape(self) -> str: ...

    @property
    def colour(self) -> str: ...


def is_held_out(a: Kind, name: str, b: Kind) -> bool:
    """Whether "``a`` is ``name`` ``b``" is a composition kept from training.

    For every direction, one kind (colour × shape) in thirty-two is never the thing that lies there.
    The same is kept from the reverse wording, "``b`` is right of ``a``" for "``a`` is left of
    ``b``".
    """
    return _is_barred(a, name) or _is_barred(b, OPPOSITE[name])


def _is_barred(thing: Kind, name: str) -> bool:
    colour, shape = list(COLOURS).index(thing.colour), SHAPES.index(thing.shape)
    return (colour + 5 * shape + 8 * DIRECTIONS.index(name)) % 32 == 0


def holds_held_out(scene: Scene) -> bool:
    """Whether a scene shows a composition kept from training."""
    pairs = ((a, direction(a, b), b) for a, b in product(scene.things, repeat=2) if a is not b)
    return any(name is not None and is_held_out(a, name, b) for a, name, b in pairs)


def sample_scene(seed: int, split: str, index: int) -> Scene:
    """Draws the scene of a place in a split; the same arguments give the same scene.

    Training and validation scenes hold no composition of :func:`is_held_out`; half of the test
    scenes hold at least one. Some scenes at odd places are twins of the scene before them, which
    share its words and not its truths.
    """
    rng = np.random.default_rng([seed, SPLITS.index(split), index])
    if index % 2 and rng.random() < TWIN_SHARE:
        original = sample_scene(seed, split, index - 1)
        for twin in _twins(original, index, _draw_ground(rng), rng):
            is_other = twin.things != original.things  # not if all have one colour
            is_allowed = split == 'test' or not holds_held_out(twin)
            if is_other and is_allowed and _is_describable(twin):
                return twin
    wanted = split == 'test' and rng.random() < HELD_OUT_SHARE
    kinds = _draw_kinds(rng)
    while True:
        scene = _arrange(kinds, index, rng)
        if scene and _is_describable(scene) and holds_held_out(scene) == wanted:
            return scene
        kinds = _draw_kinds(rng, len(kinds))


def _twins(
    scene: Scene, index: int, ground: tuple[int, int, int], rng: np.random.Generator
) -> list[Scene]:
    """The scene turned by 180°, and with its colours handed on by one thing, in random order."""
    things = scene.things
    turned = tuple(replace(thing, x=1 - thing.x, y=1 - thing.y) for thing in things)
    recoloured = tuple(
        replace(thing, colour=things[place - 1].colour) for place, thing in enumerate(things)
    )
    twins = [Scene(index, turned, ground), Scene(index, recoloured, ground)]
    return twins[::-1] if rng.random() < 0.5 else twins


def _draw_ground(rng: np.random.Generator) -> tuple[int, int, int]:
    red, green, blue = (int(value) for value in rng.integers(205, 251, 3))
    return red, green, blue


def _draw_kinds(rng: np.random.Generator, count: int | None = None) -> list[tuple[str, str]]:
    """Shape and colour of each thing, two to six of them when no count is given."""
    count = count or int(rng.integers(2, 7))
    numbers = rng.permutation(len(SHAPES) * len(COLOURS))[:count]
    kinds = [(SHAPES[n % len(SHAPES)], list(COLOURS)[n // len(SHAPES)]) for n in numbers]
    if count >= 4 and rng.random() < ALIKE_SHARE:
        alike = int(rng.integers(2, count - 1)) if count == 5 else 2
        kinds[:alike] = [kinds[0]] * alike
    return kinds


def _is_describable(scene: Scene) -> bool:
    """Whether two things that their colour and shape tell from all others are clearly placed."""
    kinds = [(thing.shape, thing.colour) for thing in scene.things]
    unique = [
        thing for thing, kind in zip(scene.things, kinds, strict=True) if kinds.count(kind) == 1
    ]
    return any(direction(a, b) for a in unique for b in unique if a is not b)


def _arrange(kinds: list[tuple[str, str]], index: int, rng: np.random.Generator) -> Scene | None:
    """Gives each kind a size, a texture and a place, or None when one found no room."""
    things: list[Thing] = []
    for shape, colour in kinds:
        thing = _place(rng, things, shape, colour)
        if thing is None:
            return None
        things.append(thing)
    return Scene(index, tuple(things), _draw_ground(rng))


def _place(rng: np.random.Generator, others: list[Thing], shape: str, colour: str) -> Thing | None:
    """A thing that overlaps no other, or None after twenty tries."""
    size = tuple(SIZES)[rng.integers(len(SIZES))]
    texture = TEXTURES[rng.integers(len(TEXTURES))]
    for _ in range(20):
        radius = float(rng.uniform(*SIZES[size]))
        x, y = rng.uniform(radius + 0.01, 0.99 - radius, 2).tolist()
        if all(hypot(x - o.x, y - o.y) > radius + o.radius + 0.01 for o in others):
            return Thing(shape, colour, size, texture, x, y, radius)
    return None
