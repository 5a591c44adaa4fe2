"""The embedded world as SNLI-VE: hypotheses that an image entails, contradicts or leaves open.

An image is understood as a part of a larger scene. It decides the positions of the objects that it
shows, so that a hypothesis about them is entailed or contradicted. An object that it does not show
may be outside of it, so that a hypothesis about such an object is neutral.

The words alone must not reveal the label. Each scene therefore gets one hypothesis of each label,
all three with the same patterns ("the … is left of the …"). The contradiction reverses a direction
that holds. The neutral hypothesis replaces one object or both by an object that the image lacks
(another colour, another shape or both). All are sampled from the same statements: those whose
reverse may be said as well. In training nothing is said about an axis on which one of the two
directions is held out, since that would reveal the label. A model that reads only the words scores
near 1/3 (``tests/datasets/test_shapes_entailment.py``).
"""

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np

from xmodal.datasets.shapes.grammar import WORDINGS
from xmodal.datasets.shapes.pick import pick
from xmodal.datasets.shapes.record import Record, Splits, write_json_lines
from xmodal.datasets.shapes.scene import (
    COLOURS,
    OPPOSITE,
    SHAPES,
    SPLITS,
    Scene,
    SceneObject,
    direction,
    is_held_out,
    may_be_said,
)

_TEMPLATES = (
    'the {a} is {r} the {b}',
    'the {a} lies {r} the {b}',
    'the {a} can be seen {r} the {b}',
    '{r} the {b} lies the {a}',
)
_OFFICIAL_SPLITS = {'train': 'train', 'val': 'dev', 'test': 'test'}

Link = tuple[SceneObject, str, SceneObject]  # direction of the first object from the second


def write_snli_ve(folder: Path, splits: Splits) -> None:
    """``snli_ve/snli_ve_{train,dev,test}.jsonl``; images are named below ``images/``."""
    for split, records in splits.items():
        lines = (line for record in records for line in _lines(split, record))
        write_json_lines(folder / 'snli_ve' / f'snli_ve_{_OFFICIAL_SPLITS[split]}.jsonl', lines)


def generate_hypotheses(split: str, scene: Scene) -> dict[str, tuple[str, Link]]:
    """One hypothesis of each label about a scene, by label: its text and its logical form."""
    rng = np.random.default_rng([SPLITS.index(split), scene.index, 2])
    links = _links(split, scene)
    if not links:
        return {}
    by_label = {
        'entailment': _random_side(pick(links, rng), rng),
        'contradiction': _reversed(_random_side(pick(links, rng), rng)),
        'neutral': _with_absent_objects(split, scene, links, rng),
    }
    return {label: (_word(link, rng), link) for label, link in by_label.items()}


def _lines(split: str, record: Record) -> list[dict]:
    """The hypotheses of a scene with the fields of SNLI-VE."""
    image = record.image.rpartition('.')[0]
    return [
        {
            'Flickr30K_ID': image,
            'captionID': f'{image}#0',
            'pairID': f'{image}#0r1{label[0]}',
            'sentence1': record.captions[0],
            'sentence2': text,
            'gold_label': label,
            'annotator_labels': [label],
        }
        for label, (text, _) in generate_hypotheses(split, record.scene).items()
    ]


def _links(split: str, scene: Scene) -> list[Link]:
    """The true directions between objects of a unique colour and shape.

    For a test scene with held-out compositions, only these.
    """
    links = [
        (a, name, b)
        for a, b in permutations(scene.unique_objects(), 2)
        if (name := direction(a, b)) and (split == 'test' or may_be_said(a, name, b))
    ]
    return [link for link in links if is_held_out(*link)] or links


def _with_absent_objects(
    split: str, scene: Scene, links: list[Link], rng: np.random.Generator
) -> Link:
    """A link or its reverse, with one or both objects replaced by objects that the scene lacks."""
    while True:
        a, name, b = _random_side(pick(links, rng), rng)
        absent_a, absent_b = _absent(a, scene, rng), _absent(b, scene, rng)
        a, b = pick(((absent_a, b), (a, absent_b), (absent_a, absent_b)), rng)
        link = (a, pick((name, OPPOSITE[name]), rng), b)
        if split == 'test' or may_be_said(*link):
            return link


def _absent(obj: SceneObject, scene: Scene, rng: np.random.Generator) -> SceneObject:
    """The object with another colour, another shape or both, of a kind that the scene lacks."""
    kinds = {(other.shape, other.colour) for other in scene.objects}
    while True:
        shape, colour = pick(SHAPES, rng), pick(tuple(COLOURS), rng)
        other = pick(
            (
                replace(obj, colour=colour),
                replace(obj, shape=shape),
                replace(obj, shape=shape, colour=colour),
            ),
            rng,
        )
        if (other.shape, other.colour) not in kinds:
            return other


def _random_side(link: Link, rng: np.random.Generator) -> Link:
    """The link seen from either side: "b is right of a" for "a is left of b"."""
    a, name, b = link
    return link if rng.random() < 0.5 else (b, OPPOSITE[name], a)


def _reversed(link: Link) -> Link:
    """A link that is false where the given one holds."""
    a, name, b = link
    return a, OPPOSITE[name], b


def _word(link: Link, rng: np.random.Generator) -> str:
    a, name, b = link
    return pick(_TEMPLATES, rng).format(
        a=_name(a, rng), r=pick(WORDINGS[name], rng), b=_name(b, rng)
    )


def _name(obj: SceneObject, rng: np.random.Generator) -> str:
    """Always names colour and shape; size and texture sometimes, as in captions."""
    adjectives = []
    if rng.random() < 0.5:
        adjectives.append(pick(WORDINGS[obj.size], rng))
    if rng.random() < (0.2 if obj.texture == 'solid' else 0.6):
        adjectives.append(pick(WORDINGS[obj.texture], rng))
    return ' '.join([*adjectives, obj.colour, obj.shape])
