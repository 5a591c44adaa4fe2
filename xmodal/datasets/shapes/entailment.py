"""The embedded world as SNLI-VE: what a picture entails, leaves open or contradicts.

A picture is read as a cut-out of something larger. Of things that it shows it decides where they
are, so that a hypothesis about them is entailed or contradicted; a thing that it does not show may
lie beside it, so that a hypothesis about one is neutral.

The words alone must not tell the label. Each scene therefore gets one hypothesis of each label, all
three of one wording ("the … is left of the …"): the contradiction turns round a direction that
holds, and the neutral one puts what the picture lacks (another colour, another shape or both, from
near to far) in the place of one thing or of both. Each is drawn from the same statements, namely
those whose reverse may be said as well: in training nothing is said of an axis on which one of the
two directions is held out, since that would tell which. A reader of the words scores near 1/3
(``tests/datasets/test_shapes_entailment.py``).
"""

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np

from xmodal.datasets.shapes.grammar import WORDINGS
from xmodal.datasets.shapes.record import Record, Splits, write_json_lines
from xmodal.datasets.shapes.scene import (
    COLOURS,
    OPPOSITE,
    SHAPES,
    SPLITS,
    Scene,
    Thing,
    direction,
    is_held_out,
)

_TEMPLATES = (
    'the {a} is {r} the {b}',
    'the {a} lies {r} the {b}',
    'the {a} can be seen {r} the {b}',
    '{r} the {b} lies the {a}',
)
_OFFICIAL_SPLITS = {'train': 'train', 'val': 'dev', 'test': 'test'}

Link = tuple[Thing, str, Thing]  # where the first is, seen from the second


def write_snli_ve(folder: Path, splits: Splits) -> None:
    """``snli_ve/snli_ve_{train,dev,test}.jsonl``; images are named below ``images/``."""
    for split, records in splits.items():
        lines = (line for record in records for line in _describe(split, record))
        write_json_lines(folder / 'snli_ve' / f'snli_ve_{_OFFICIAL_SPLITS[split]}.jsonl', lines)


def write_hypotheses(split: str, scene: Scene) -> dict[str, tuple[str, Link]]:
    """A hypothesis of each label about a scene, by label: the words, and what they say."""
    rng = np.random.default_rng([SPLITS.index(split), scene.index, 2])
    links = _links(split, scene)
    if not links:
        return {}
    found = {
        'entailment': _turned(_pick(links, rng), rng),
        'contradiction': _reversed(_turned(_pick(links, rng), rng)),
        'neutral': _with_absent_things(split, scene, links, rng),
    }
    return {label: (_word(link, rng), link) for label, link in found.items()}


def _describe(split: str, record: Record) -> list[dict]:
    """A scene's hypotheses in the fields of SNLI-VE."""
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
        for label, (text, _) in write_hypotheses(split, record.scene).items()
    ]


def _links(split: str, scene: Scene) -> list[Link]:
    """What holds of two things that their colour and shape tell from all others.

    In a test scene, what names a held-out composition where something does.
    """
    kinds = [(thing.shape, thing.colour) for thing in scene.things]
    alone = [t for t, kind in zip(scene.things, kinds, strict=True) if kinds.count(kind) == 1]
    links = [
        (a, name, b)
        for a, b in permutations(alone, 2)
        if (name := direction(a, b)) and (split == 'test' or _may_be_said(a, name, b))
    ]
    return [link for link in links if is_held_out(*link)] or links


def _may_be_said(a: Thing, name: str, b: Thing) -> bool:
    """Whether neither this nor its reverse is a composition kept from training."""
    return not is_held_out(a, name, b) and not is_held_out(a, OPPOSITE[name], b)


def _with_absent_things(
    split: str, scene: Scene, links: list[Link], rng: np.random.Generator
) -> Link:
    """A link, either way round, with things that the scene lacks in one place or in both."""
    while True:
        a, name, b = _turned(_pick(links, rng), rng)
        absent_a, absent_b = _absent(a, scene, rng), _absent(b, scene, rng)
        a, b = _pick(((absent_a, b), (a, absent_b), (absent_a, absent_b)), rng)
        link = (a, _pick((name, OPPOSITE[name]), rng), b)
        if split == 'test' or _may_be_said(*link):
            return link


def _absent(thing: Thing, scene: Scene, rng: np.random.Generator) -> Thing:
    """The thing with another colour, another shape or both, of a kind that the scene lacks."""
    shown = {(other.shape, other.colour) for other in scene.things}
    while True:
        shape, colour = _pick(SHAPES, rng), _pick(tuple(COLOURS), rng)
        other = _pick(
            (
                replace(thing, colour=colour),
                replace(thing, shape=shape),
                replace(thing, shape=shape, colour=colour),
            ),
            rng,
        )
        if (other.shape, other.colour) not in shown:
            return other


def _turned(link: Link, rng: np.random.Generator) -> Link:
    """The same said from either side: "b is right of a" for "a is left of b"."""
    a, name, b = link
    return link if rng.random() < 0.5 else (b, OPPOSITE[name], a)


def _reversed(link: Link) -> Link:
    """What is false where the link holds."""
    a, name, b = link
    return a, OPPOSITE[name], b


def _word(link: Link, rng: np.random.Generator) -> str:
    a, name, b = link
    return _pick(_TEMPLATES, rng).format(
        a=_name(a, rng), r=_pick(WORDINGS[name], rng), b=_name(b, rng)
    )


def _name(thing: Thing, rng: np.random.Generator) -> str:
    """Colour and shape always, size and texture now and then, as captions do."""
    looks = []
    if rng.random() < 0.5:
        looks.append(_pick(WORDINGS[thing.size], rng))
    if rng.random() < (0.2 if thing.texture == 'solid' else 0.6):
        looks.append(_pick(WORDINGS[thing.texture], rng))
    return ' '.join([*looks, thing.colour, thing.shape])


def _pick(options: list | tuple, rng: np.random.Generator) -> object:
    return options[rng.integers(len(options))]
