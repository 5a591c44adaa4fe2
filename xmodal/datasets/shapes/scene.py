"""Scenes of the embedded world: a few objects on a light ground, drawn from a seed."""

from dataclasses import dataclass
from itertools import product

import numpy as np

SHAPES = ('disc', 'square', 'triangle', 'ring', 'cross', 'diamond', 'star', 'bar')
COLOURS = {  # RGB
    'red': (214, 39, 40),
    'orange': (255, 140, 20),
    'yellow': (240, 210, 30),
    'green': (44, 160, 60),
    'cyan': (30, 190, 210),
    'blue': (40, 80, 215),
    'purple': (140, 60, 190),
    'pink': (245, 130, 190),
    'brown': (125, 75, 40),
    'black': (30, 30, 30),
}
SIZES = {'small': (0.075, 0.09), 'large': (0.135, 0.16)}  # radius, share of the image's side
TEXTURES = ('solid', 'striped', 'dotted')
RELATIONS = ('left of', 'right of', 'above', 'below')
OPPOSITE = {'left of': 'right of', 'right of': 'left of', 'above': 'below', 'below': 'above'}

# A pair's offset counts for the axis along which it is at least this many times larger, so that no
# relation is a matter of taste.
CLEAR = 1.5


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
    """Objects on a ground; no two share both colour and shape.

    Attributes:
        index: place in the split, and image id.
        things: two to six objects.
        ground: RGB of the background.
    """

    index: int
    things: tuple[Thing, ...]
    ground: tuple[int, int, int]


def relation(a: Thing, b: Thing) -> str | None:
    """Where ``a`` is, seen from ``b``; None where neither axis clearly wins."""
    dx, dy = a.x - b.x, a.y - b.y
    if abs(dx) >= CLEAR * abs(dy):
        return 'left of' if dx < 0 else 'right of'
    if abs(dy) >= CLEAR * abs(dx):
        return 'above' if dy < 0 else 'below'
    return None


def is_held_out(a: Thing, name: str, b: Thing) -> bool:
    """Whether "``a`` is ``name`` ``b``" is a composition kept from training.

    For every relation, one colour × shape pair in twenty never stands on its near side, and the
    same pairs never on the far side of the opposite relation: the two say the same.
    """
    return _never_first(a, name) or _never_first(b, OPPOSITE[name])


def _never_first(thing: Thing, name: str) -> bool:
    colour, shape = list(COLOURS).index(thing.colour), SHAPES.index(thing.shape)
    return (colour + 3 * shape + 2 * RELATIONS.index(name)) % 20 == 0


def relations(scene: Scene) -> list[tuple[Thing, str, Thing]]:
    """Every clear relation between two things of a scene, in both directions."""
    found = []
    for a, b in product(scene.things, repeat=2):
        name = relation(a, b) if a is not b else None
        if name:
            found.append((a, name, b))
    return found


def sample_scene(seed: int, split: str, index: int) -> Scene:
    """Draws the scene of a place in a split; the same arguments give the same scene.

    Training and validation scenes hold no composition of :func:`is_held_out`; every test scene
    holds at least one.
    """
    rng = np.random.default_rng([seed, ('train', 'val', 'test').index(split), index])
    while True:
        scene = _draw_scene(rng, index)
        if scene is None:
            continue
        held_out = [triple for triple in relations(scene) if is_held_out(*triple)]
        if bool(held_out) == (split == 'test'):
            return scene


def _draw_scene(rng: np.random.Generator, index: int) -> Scene | None:
    """A scene, or None when the things found no room or no clear relation."""
    count = rng.integers(2, 7)
    kinds = rng.choice(len(SHAPES) * len(COLOURS), count, replace=False)
    things: list[Thing] = []
    for kind in kinds:
        thing = _place(rng, things, SHAPES[kind % len(SHAPES)], list(COLOURS)[kind // len(SHAPES)])
        if thing is None:
            return None
        things.append(thing)
    scene = Scene(index, tuple(things), tuple(int(v) for v in rng.integers(205, 251, 3)))
    return scene if relations(scene) else None


def _place(
    rng: np.random.Generator, others: list[Thing], shape: str, colour: str
) -> Thing | None:
    """A thing that overlaps no other, or None after twenty tries."""
    size = ('small', 'large')[rng.integers(2)]
    texture = TEXTURES[rng.integers(len(TEXTURES))]
    for _ in range(20):
        radius = rng.uniform(*SIZES[size])
        x, y = rng.uniform(radius + 0.01, 0.99 - radius, 2)
        apart = (np.hypot(x - o.x, y - o.y) > radius + o.radius + 0.01 for o in others)
        if all(apart):
            return Thing(shape, colour, size, texture, float(x), float(y), float(radius))
    return None
