"""The embedded world as NLVR2: statements that are true or false of two images.

A statement says that the left image, the right image or both show a pattern: an object of a colour
and a shape, or a shape in some direction of another shape. As in NLVR2 each statement comes with
four pairs of images and is true of two of them, so that its words do not reveal the label. Its
truth depends on which image is left and which is right, not on what the images show. Half of the
images that make it false show everything that it names, but combined in another way or reversed.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xmodal.datasets.shapes.grammar import WORDINGS, with_article
from xmodal.datasets.shapes.pick import pick
from xmodal.datasets.shapes.record import Record, Splits, write_json_lines
from xmodal.datasets.shapes.scene import OPPOSITE, SPLITS, Scene, direction

#: Words of the statements that captions do not have.
REASONING_WORDS = ('in', 'both', 'pictures')

_TEMPLATES = ('there is {pattern} in {side}', 'in {side} there is {pattern}')
_SIDES = {'left': 'the left picture', 'right': 'the right picture', 'both': 'both pictures'}
_OFFICIAL_SPLITS = {'train': 'train', 'val': 'dev', 'test': 'test1'}
_MAX_STATEMENTS = 10_000  # per split

# What an image may show: (colour, shape), or (shape, direction, shape).
Pattern = tuple[str, ...]


class Example(NamedTuple):
    """A statement with one of its pairs.

    Attributes:
        text: the statement.
        side: 'left', 'right' or 'both': the image that the statement is about.
        pattern: what this image is said to show.
        left, right: indices of the images in their split.
        holds: whether the statement is true of the pair.
    """

    text: str
    side: str
    pattern: Pattern
    left: int
    right: int
    holds: bool


def write_nlvr2(folder: Path, splits: Splits) -> None:
    """``nlvr2/{train,dev,test1}.json``; the "urls" are paths below the folder of the world."""
    for split, records in splits.items():
        official = _OFFICIAL_SPLITS[split]
        write_json_lines(folder / 'nlvr2' / f'{official}.json', _lines(official, split, records))


def _lines(official: str, split: str, records: list[Record]) -> Iterator[dict]:
    """Examples with the fields of NLVR2."""
    sets = generate_statements(split, [record.scene for record in records])
    for set_index, examples in enumerate(sets):
        for pair, example in enumerate(examples):
            yield {
                'sentence': example.text,
                'left_url': f'images/{records[example.left].image}',
                'right_url': f'images/{records[example.right].image}',
                'label': str(example.holds),
                'identifier': f'{official}-{set_index}-{pair}-0',
            }


def generate_statements(split: str, scenes: list[Scene]) -> Iterator[list[Example]]:
    """Statements about the scenes of a split, one for two scenes, each with its four pairs."""
    rng = np.random.default_rng([SPLITS.index(split), len(scenes), 3])
    showing, hard_negatives = _scenes_by_pattern(scenes)
    pattern_types = [
        patterns
        for length in (2, 3)
        if (patterns := [p for p in showing if len(p) == length and len(showing[p]) > 1])
    ]
    if not pattern_types:
        return
    for _ in range(min(len(scenes) // 2, _MAX_STATEMENTS)):
        pattern = pick(pick(pattern_types, rng), rng)
        lacking = _sample_lacking(scenes, pattern, hard_negatives[pattern], rng)
        if len(lacking) < 2:  # in a world of a few scenes
            continue
        side = pick(list(_SIDES), rng)
        text = _word(pattern, side, rng)
        pairs = _pairs(
            side, _first_four(rng.permutation(showing[pattern])), _first_four(lacking), rng
        )
        yield [Example(text, side, pattern, *pairs[index]) for index in rng.permutation(4)]


def _pairs(
    side: str, showing: list[int], lacking: list[int], rng: np.random.Generator
) -> list[tuple[int, int, bool]]:
    """Left, right and truth of four pairs, from four images each that show or lack the pattern."""
    if side == 'both':
        mixed = (showing[0], lacking[0]) if rng.random() < 0.5 else (lacking[0], showing[0])
        return [
            (showing[0], showing[1], True),
            (showing[3], showing[2], True),
            (*mixed, False),
            (lacking[1], lacking[2], False),
        ]
    pairs = [
        (showing[0], lacking[0], True),
        (showing[1], showing[2], True),
        (lacking[1], showing[3], False),
        (lacking[2], lacking[3], False),
    ]
    return pairs if side == 'left' else [(right, left, holds) for left, right, holds in pairs]


def _scenes_by_pattern(
    scenes: list[Scene],
) -> tuple[dict[Pattern, list[int]], dict[Pattern, list[int]]]:
    """By pattern the scenes that show it, and those that have its parts but clearly lack it."""
    showing, hard_negatives = defaultdict(list), defaultdict(list)
    for index, scene in enumerate(scenes):
        shown = _patterns(scene)
        for pattern in sorted(shown):
            showing[pattern].append(index)
        for pattern in sorted(_recombined(scene, shown) - shown):
            if _lacks(scene, pattern):
                hard_negatives[pattern].append(index)
    return showing, hard_negatives


def _sample_lacking(
    scenes: list[Scene], pattern: Pattern, hard_negatives: list[int], rng: np.random.Generator
) -> list[int]:
    """Up to four scenes that clearly lack a pattern, of which up to two are hard negatives."""
    sampled = dict.fromkeys(rng.permutation(hard_negatives)[:2].tolist())
    for index in rng.integers(len(scenes), size=100).tolist():
        if len(sampled) < 4 and _lacks(scenes[index], pattern):
            sampled[index] = None
    return rng.permutation(list(sampled)).tolist()


def _patterns(scene: Scene) -> set[Pattern]:
    """All patterns that a scene shows."""
    kinds = {(obj.colour, obj.shape) for obj in scene.objects}
    relations = {
        (a.shape, name, b.shape)
        for a, b in permutations(scene.objects, 2)
        if a.shape != b.shape and (name := direction(a, b))
    }
    return kinds | relations


def _recombined(scene: Scene, shown: set[Pattern]) -> set[Pattern]:
    """Patterns of a scene's parts: all its colours with all its shapes, and reversed relations."""
    colours, shapes = ({getattr(o, name) for o in scene.objects} for name in ('colour', 'shape'))
    relations = (pattern for pattern in shown if len(pattern) == 3)
    return {(colour, shape) for colour in colours for shape in shapes} | {
        (first, OPPOSITE[name], second) for first, name, second in relations
    }


def _lacks(scene: Scene, pattern: Pattern) -> bool:
    """Whether a scene clearly lacks a pattern: all objects of two shapes have the reverse one."""
    if len(pattern) == 2:
        return pattern not in {(obj.colour, obj.shape) for obj in scene.objects}
    first, name, second = pattern
    return all(
        direction(a, b) == OPPOSITE[name]
        for a, b in permutations(scene.objects, 2)
        if (a.shape, b.shape) == (first, second)
    )


def _word(pattern: Pattern, side: str, rng: np.random.Generator) -> str:
    if len(pattern) == 2:
        phrase = with_article(' '.join(pattern))
    else:
        first, name, second = pattern
        phrase = f'{with_article(first)} {pick(WORDINGS[name], rng)} {with_article(second)}'
    return pick(_TEMPLATES, rng).format(pattern=phrase, side=_SIDES[side])


def _first_four(indices: np.ndarray | list[int]) -> list[int]:
    """The first four; where there are fewer, they are repeated."""
    return np.resize(indices[:4], 4).tolist()
