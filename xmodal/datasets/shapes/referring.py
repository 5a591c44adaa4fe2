"""Referring expressions of the embedded world, in the files of RefCOCO+."""

import pickle
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xmodal.datasets.shapes.coco_instances import CATEGORIES, annotations_of, image_entry
from xmodal.datasets.shapes.grammar import WORDINGS
from xmodal.datasets.shapes.pick import pick
from xmodal.datasets.shapes.record import Record, Splits, image_id
from xmodal.datasets.shapes.scene import (
    SPLITS,
    Scene,
    SceneObject,
    direction,
    has_held_out_composition,
)
from xmodal.datasets.shapes.statements import Description
from xmodal.files import write_json

# As in RefCOCO+, expressions have no absolute locations. They identify an object by its appearance,
# {a}, or by its direction, {r}, from another object, {b}.
_BY_APPEARANCE = ('{a}', 'the {a}')
_BY_RELATION = ('{a} {r} the {b}', 'the {a} {r} the {b}', 'the {a} that is {r} the {b}')
_MAX_TRIES = 20


@dataclass(frozen=True)
class Expression:
    """The logical form of a referring expression.

    Attributes:
        target: what it says of the target object.
        relation: its direction from another object, or None.
        other: what it says of that other object, or None.
    """

    target: Description
    relation: str | None = None
    other: Description | None = None

    def referents(self, scene: Scene) -> list[SceneObject]:
        """The objects of a scene that the expression may refer to."""
        fitting = [obj for obj in scene.objects if self.target.fits(obj)]
        if self.relation is None:
            return fitting
        others = [obj for obj in scene.objects if self.other.fits(obj)]
        return [
            obj
            for obj in fitting
            if any(other is not obj and direction(obj, other) == self.relation for other in others)
        ]


def generate_expressions(split: str, scene: Scene) -> list[tuple[str, Expression, int]]:
    """Up to two expressions by appearance and one by relation for each identifiable object.

    As people do, a relation is named only where the named attributes fit more than one object.

    Returns:
        The wording, its logical form, and the index of the object in the scene.
    """
    rng = np.random.default_rng([SPLITS.index(split), scene.index, 2])
    by_text: dict[str, tuple[Expression, int]] = {}
    for index, obj in enumerate(scene.objects):
        sampled = [_by_appearance(scene, obj, rng) for _ in range(2)]
        for expression in (*sampled, _by_relation(scene, obj, rng)):
            if expression is not None:
                by_text.setdefault(_word(expression, rng), (expression, index))
    return [(text, *target) for text, target in by_text.items()]


def _by_appearance(scene: Scene, obj: SceneObject, rng: np.random.Generator) -> Expression | None:
    """A sampled expression that fits only this object, or None after twenty tries."""
    for _ in range(_MAX_TRIES):
        expression = Expression(_describe(obj, rng, colour_share=0.8))
        if expression.referents(scene) == [obj]:
            return expression
    return None


def _by_relation(scene: Scene, obj: SceneObject, rng: np.random.Generator) -> Expression | None:
    """A sampled expression that fits only this object because of its direction, or None."""
    others = [other for other in scene.objects if other is not obj and direction(obj, other)]
    for _ in range(_MAX_TRIES if others else 0):
        target = _describe(obj, rng, colour_share=0.4)
        other = pick(others, rng)
        anchor = _by_appearance(scene, other, rng)
        if anchor is None or Expression(target).referents(scene) == [obj]:
            continue
        expression = Expression(target, direction(obj, other), anchor.target)
        if expression.referents(scene) == [obj]:
            return expression
    return None


def _describe(obj: SceneObject, rng: np.random.Generator, colour_share: float) -> Description:
    has_colour, has_size, has_texture = rng.random(3) < (colour_share, 0.3, 0.3)
    return Description(
        obj.shape,
        obj.colour if has_colour else None,
        obj.size if has_size else None,
        obj.texture if has_texture else None,
    )


def _word(expression: Expression, rng: np.random.Generator) -> str:
    """One of the wordings of an expression."""
    a = _phrase(expression.target, rng)
    if expression.relation is None:
        return pick(_BY_APPEARANCE, rng).format(a=a)
    relation = pick(WORDINGS[expression.relation], rng)
    b = _phrase(expression.other, rng)
    return pick(_BY_RELATION, rng).format(a=a, r=relation, b=b)


def _phrase(description: Description, rng: np.random.Generator) -> str:
    names = [name for name in (description.size, description.texture) if name]
    words = [pick(WORDINGS[name], rng) for name in names]
    words += [description.colour] if description.colour else []
    return ' '.join([*words, description.shape])


def refcoco_split(split: str, record: Record) -> str:
    """RefCOCO+'s name of the split of a scene.

    RefCOCO+ has two test splits. Here testB has the scenes with a composition that is held out from
    training, and testA all others.
    """
    if split != 'test':
        return split
    return 'testB' if has_held_out_composition(record.scene) else 'testA'


def write_refcoco_plus(folder: Path, splits: Splits) -> None:
    """``refcoco+/refs(unc).p`` and ``refcoco+/instances.json``, of all splits."""
    references, images, annotations, num_sentences = [], [], [], 0
    for split, records in splits.items():
        for record in records:
            image = image_id(split, record)
            images.append(image_entry(record, image))
            new_annotations = annotations_of(record, image, first_id=len(annotations) + 1)
            annotations += new_annotations
            expressions = generate_expressions(split, record.scene)
            for index, annotation in enumerate(new_annotations):
                texts = [text for text, _, target in expressions if target == index]
                if texts:
                    reference = _reference(annotation, texts, num_sentences)
                    num_sentences += len(texts)
                    reference['ref_id'] = len(references)
                    reference['split'] = refcoco_split(split, record)
                    references.append(reference)
    content = {'images': images, 'annotations': annotations, 'categories': CATEGORIES}
    write_json(folder / 'refcoco+' / 'instances.json', content)
    file = folder / 'refcoco+' / 'refs(unc).p'
    file.write_bytes(pickle.dumps(references, protocol=2))  # Python 2's, as in REFER


def _reference(annotation: dict, texts: list[str], first_sentence: int) -> dict:
    """An entry of ``refs(unc).p``: an object with its expressions."""
    sent_ids = range(first_sentence, first_sentence + len(texts))
    return {
        'ann_id': annotation['id'],
        'image_id': annotation['image_id'],
        'category_id': annotation['category_id'],
        'file_name': f'SHAPES_{annotation["image_id"]:012d}_{annotation["id"]}.png',
        'sent_ids': list(sent_ids),
        'sentences': [
            {'sent_id': sent_id, 'sent': text, 'raw': text, 'tokens': text.split()}
            for sent_id, text in zip(sent_ids, texts, strict=True)
        ],
    }
