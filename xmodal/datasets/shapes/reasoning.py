"""The embedded world as NLVR2: statements that are true or false of two pictures.

A statement says of the left picture, of the right one or of both that it shows something: a thing
of a colour and a shape, or a shape somewhere of another shape. As in NLVR2 each statement goes with
four pairs, true of two and false of two, so that its words say nothing of the label; and its truth
hangs on the places of the pictures, not on what is shown in any of them. Of the pictures that make
it false one half holds all that is named, otherwise bound or the other way round.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xmodal.datasets.shapes.grammar import WORDINGS
from xmodal.datasets.shapes.record import Record, Splits, write_json_lines
from xmodal.datasets.shapes.scene import OPPOSITE, SPLITS, Scene, direction

#: What the statements need besides the words of captions.
REASONING_WORDS = ('in', 'both', 'pictures')

_TEMPLATES = ('there is {sight} in {where}', 'in {where} there is {sight}')
_WHERE = {'left': 'the left picture', 'right': 'the right picture', 'both': 'both pictures'}
_OFFICIAL_SPLITS = {'train': 'train', 'val': 'dev', 'test': 'test1'}
_MOST_SETS = 10_000  # a split

# What a picture may show: (colour, shape), or (shape, direction, shape).
Sight = tuple[str, ...]


class Example(NamedTuple):
    """A statement with one of its pairs.

    Attributes:
        text: the statement.
        where: 'left', 'right' or 'both'.
        sight: what is said to be seen there.
        left, right: the pictures, places in their split.
        holds: whether it is true.
    """

    text: str
    where: str
    sight: Sight
    left: int
    right: int
    holds: bool


def write_nlvr2(folder: Path, splits: Splits) -> None:
    """``nlvr2/{train,dev,test1}.json``; the "urls" are paths below the world's folder."""
    for split, records in splits.items():
        official = _OFFICIAL_SPLITS[split]
        write_json_lines(folder / 'nlvr2' / f'{official}.json', _lines(official, split, records))


def _lines(official: str, split: str, records: list[Record]) -> Iterator[dict]:
    """Examples in the fields of NLVR2."""
    sets = write_statements(split, [record.scene for record in records])
    for number, examples in enumerate(sets):
        for pair, example in enumerate(examples):
            yield {
                'sentence': example.text,
                'left_url': f'images/{records[example.left].image}',
                'right_url': f'images/{records[example.right].image}',
                'label': str(example.holds),
                'identifier': f'{official}-{number}-{pair}-0',
            }


def write_statements(split: str, scenes: list[Scene]) -> Iterator[list[Example]]:
    """Statements over the scenes of a split, each with its four pairs: one for two scenes."""
    rng = np.random.default_rng([SPLITS.index(split), len(scenes), 3])
    showing, tempting = _find(scenes)
    families = [
        family
        for words in (2, 3)
        if (family := [s for s in showing if len(s) == words and len(showing[s]) > 1])
    ]
    if not families:
        return
    for _ in range(min(len(scenes) // 2, _MOST_SETS)):
        sight = _pick(_pick(families, rng), rng)
        lacking = _draw_lacking(scenes, sight, tempting[sight], rng)
        if len(lacking) < 2:  # in a world of a few scenes
            continue
        where = _pick(list(_WHERE), rng)
        text = _word(sight, where, rng)
        pairs = _pairs(where, _four(rng.permutation(showing[sight])), _four(lacking), rng)
        yield [Example(text, where, sight, *pairs[place]) for place in rng.permutation(4)]


def _pairs(
    where: str, showing: list[int], lacking: list[int], rng: np.random.Generator
) -> list[tuple[int, int, bool]]:
    """Left, right and truth of four pairs, out of four pictures that show the sight or lack it."""
    if where == 'both':
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
    return pairs if where == 'left' else [(right, left, holds) for left, right, holds in pairs]


def _find(scenes: list[Scene]) -> tuple[dict[Sight, list[int]], dict[Sight, list[int]]]:
    """By sight the scenes that show it, and those that have its parts and clearly lack it."""
    showing, tempting = defaultdict(list), defaultdict(list)
    for place, scene in enumerate(scenes):
        found = _sights(scene)
        for sight in sorted(found):
            showing[sight].append(place)
        for sight in sorted(_parts(scene, found) - found):
            if _lacks(scene, sight):
                tempting[sight].append(place)
    return showing, tempting


def _draw_lacking(
    scenes: list[Scene], sight: Sight, tempting: list[int], rng: np.random.Generator
) -> list[int]:
    """Up to four scenes that clearly lack a sight, up to two tempting ones among them."""
    drawn = dict.fromkeys(rng.permutation(tempting)[:2].tolist())
    for place in rng.integers(len(scenes), size=100).tolist():
        if len(drawn) < 4 and _lacks(scenes[place], sight):
            drawn[place] = None
    return rng.permutation(list(drawn)).tolist()


def _sights(scene: Scene) -> set[Sight]:
    """All that a scene shows."""
    kinds = {(thing.colour, thing.shape) for thing in scene.things}
    relations = {
        (a.shape, name, b.shape)
        for a, b in permutations(scene.things, 2)
        if a.shape != b.shape and (name := direction(a, b))
    }
    return kinds | relations


def _parts(scene: Scene, found: set[Sight]) -> set[Sight]:
    """What a scene has the parts of: any of its colours with any of its shapes, and reverses."""
    colours, shapes = ({getattr(t, name) for t in scene.things} for name in ('colour', 'shape'))
    relations = (sight for sight in found if len(sight) == 3)
    return {(colour, shape) for colour in colours for shape in shapes} | {
        (first, OPPOSITE[name], second) for first, name, second in relations
    }


def _lacks(scene: Scene, sight: Sight) -> bool:
    """Whether a scene lacks it beyond doubt: all things of two shapes lie the other way."""
    if len(sight) == 2:
        return sight not in {(thing.colour, thing.shape) for thing in scene.things}
    first, name, second = sight
    return all(
        direction(a, b) == OPPOSITE[name]
        for a, b in permutations(scene.things, 2)
        if (a.shape, b.shape) == (first, second)
    )


def _word(sight: Sight, where: str, rng: np.random.Generator) -> str:
    if len(sight) == 2:
        said = _with_article(' '.join(sight))
    else:
        first, name, second = sight
        said = f'{_with_article(first)} {_pick(WORDINGS[name], rng)} {_with_article(second)}'
    return _pick(_TEMPLATES, rng).format(sight=said, where=_WHERE[where])


def _with_article(noun: str) -> str:
    return f'{"an" if noun[0] in "aeiou" else "a"} {noun}'


def _four(places: np.ndarray | list[int]) -> list[int]:
    """The first four, again from the start where there are fewer."""
    return np.resize(places[:4], 4).tolist()


def _pick(options: list | tuple, rng: np.random.Generator) -> object:
    return options[rng.integers(len(options))]
