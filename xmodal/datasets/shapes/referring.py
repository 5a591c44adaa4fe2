"""Referring expressions of the embedded world, in the files of RefCOCO+."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from xmodal.datasets.shapes.grammar import WORDINGS
from xmodal.datasets.shapes.record import Record, Splits, image_id
from xmodal.datasets.shapes.scene import (
    SHAPES,
    SPLITS,
    Scene,
    Thing,
    direction,
    holds_held_out,
)
from xmodal.files import write_json

# An expression says no absolute place, as in RefCOCO+. These name one thing by its looks, {a}, or
# by where it lies, {r}, from another, {b}.
_BY_LOOKS = ('{a}', 'the {a}')
_BY_RELATION = ('{a} {r} the {b}', 'the {a} {r} the {b}', 'the {a} that is {r} the {b}')
_TRIES = 20
Item = TypeVar('Item')


@dataclass(frozen=True)
class Looks:
    """What an expression says of a thing's looks; None where it is silent."""

    shape: str
    colour: str | None = None
    size: str | None = None
    texture: str | None = None

    def fits(self, thing: Thing) -> bool:
        """Whether all that is said is true of a thing."""
        return (
            self.shape == thing.shape
            and self.colour in (None, thing.colour)
            and self.size in (None, thing.size)
            and self.texture in (None, thing.texture)
        )


@dataclass(frozen=True)
class Expression:
    """The logical form of a referring expression.

    Attributes:
        looks: of the thing that is meant.
        relation: the direction in which it lies from another, or None.
        other: looks of that other thing, or None.
    """

    looks: Looks
    relation: str | None = None
    other: Looks | None = None

    def referents(self, scene: Scene) -> list[Thing]:
        """The things of a scene that it may mean."""
        fitting = [thing for thing in scene.things if self.looks.fits(thing)]
        if self.relation is None:
            return fitting
        others = [thing for thing in scene.things if self.other.fits(thing)]
        return [
            thing
            for thing in fitting
            if any(
                other is not thing and direction(thing, other) == self.relation for other in others
            )
        ]


def write_expressions(split: str, scene: Scene) -> list[tuple[str, Expression, int]]:
    """Up to two expressions by looks and one by relation for each thing that one can single out.

    Relations are named where looks as few as these would fit several things, as people do.

    Returns:
        The wording, its logical form, and the place of the thing in the scene.
    """
    rng = np.random.default_rng([SPLITS.index(split), scene.index, 2])
    written: dict[str, tuple[Expression, int]] = {}
    for place, thing in enumerate(scene.things):
        drawn = [_by_looks(scene, thing, rng) for _ in range(2)]
        for expression in (*drawn, _by_relation(scene, thing, rng)):
            if expression is not None:
                written.setdefault(_word(expression, rng), (expression, place))
    return [(text, *meant) for text, meant in written.items()]


def _by_looks(scene: Scene, thing: Thing, rng: np.random.Generator) -> Expression | None:
    """A drawn expression that fits a thing alone, or None when no draw did."""
    for _ in range(_TRIES):
        expression = Expression(_draw_looks(thing, rng, colour_share=0.8))
        if expression.referents(scene) == [thing]:
            return expression
    return None


def _by_relation(scene: Scene, thing: Thing, rng: np.random.Generator) -> Expression | None:
    """A drawn expression that fits a thing alone only because of where that lies, or None."""
    others = [other for other in scene.things if other is not thing and direction(thing, other)]
    for _ in range(_TRIES if others else 0):
        looks = _draw_looks(thing, rng, colour_share=0.4)
        other = _pick(others, rng)
        anchor = _by_looks(scene, other, rng)
        if anchor is None or Expression(looks).referents(scene) == [thing]:
            continue
        expression = Expression(looks, direction(thing, other), anchor.looks)
        if expression.referents(scene) == [thing]:
            return expression
    return None


def _draw_looks(thing: Thing, rng: np.random.Generator, colour_share: float) -> Looks:
    colour, size, texture = rng.random(3) < (colour_share, 0.3, 0.3)
    return Looks(
        thing.shape,
        thing.colour if colour else None,
        thing.size if size else None,
        thing.texture if texture else None,
    )


def _word(expression: Expression, rng: np.random.Generator) -> str:
    """One of the wordings of an expression."""
    a = _phrase(expression.looks, rng)
    if expression.relation is None:
        return _pick(_BY_LOOKS, rng).format(a=a)
    said = _pick(WORDINGS[expression.relation], rng)
    b = _phrase(expression.other, rng)
    return _pick(_BY_RELATION, rng).format(a=a, r=said, b=b)


def _phrase(looks: Looks, rng: np.random.Generator) -> str:
    named = [name for name in (looks.size, looks.texture) if name]
    adjectives = [_pick(WORDINGS[name], rng) for name in named]
    return ' '.join([*adjectives, *([looks.colour] if looks.colour else []), looks.shape])


def _pick(options: Sequence[Item], rng: np.random.Generator) -> Item:
    return options[rng.integers(len(options))]


def refcoco_split(split: str, record: Record) -> str:
    """RefCOCO+'s name of a scene's split.

    It has two test splits; here testA has the scenes whose compositions were all shown in training,
    testB those that hold one that was kept from it.
    """
    if split != 'test':
        return split
    return 'testB' if holds_held_out(record.scene) else 'testA'


def write_refcoco_plus(folder: Path, splits: Splits) -> None:
    """``refcoco+/refs(unc).p`` and ``refcoco+/instances.json``, of all splits."""
    references, images, annotations, sentences = [], [], [], 0
    for split, records in splits.items():
        for record in records:
            number = image_id(split, record)
            side = {'width': record.size, 'height': record.size}
            images.append({'id': number, 'file_name': f'images/{record.image}', **side})
            own = _annotations(record, number, first_id=len(annotations) + 1)
            annotations += own
            expressions = write_expressions(split, record.scene)
            for place, annotation in enumerate(own):
                texts = [text for text, _, meant in expressions if meant == place]
                if texts:
                    reference = _reference(annotation, texts, sentences)
                    sentences += len(texts)
                    reference['ref_id'] = len(references)
                    reference['split'] = refcoco_split(split, record)
                    references.append(reference)
    categories = [
        {'id': number, 'name': name, 'supercategory': 'shape'}
        for number, name in enumerate(SHAPES, start=1)
    ]
    content = {'images': images, 'annotations': annotations, 'categories': categories}
    write_json(folder / 'refcoco+' / 'instances.json', content)
    file = folder / 'refcoco+' / 'refs(unc).p'
    file.write_bytes(pickle.dumps(references, protocol=2))  # of Python 2, as REFER's


def _annotations(record: Record, number: int, first_id: int) -> list[dict]:
    """COCO's annotations of a scene's things."""
    things = zip(record.scene.things, record.boxes, record.areas, strict=True)
    return [
        {
            'id': annotation_id,
            'image_id': number,
            'category_id': SHAPES.index(thing.shape) + 1,
            'bbox': list(box),
            'area': area,
            'iscrowd': 0,
        }
        for annotation_id, (thing, box, area) in enumerate(things, start=first_id)
    ]


def _reference(annotation: dict, texts: list[str], first_sentence: int) -> dict:
    """An entry of ``refs(unc).p``: a thing with its expressions."""
    numbers = range(first_sentence, first_sentence + len(texts))
    return {
        'ann_id': annotation['id'],
        'image_id': annotation['image_id'],
        'category_id': annotation['category_id'],
        'file_name': f'SHAPES_{annotation["image_id"]:012d}_{annotation["id"]}.png',
        'sent_ids': list(numbers),
        'sentences': [
            {'sent_id': sent_id, 'sent': text, 'raw': text, 'tokens': text.split()}
            for sent_id, text in zip(numbers, texts, strict=True)
        ],
    }
