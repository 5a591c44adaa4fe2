"""The embedded world as SugarCrepe: a caption, and the same with one thing wrong.

Each pair needs one skill: to see the attributes of an object, the direction of one from another,
how many there are, which colour belongs to which shape, and which objects there are. The second
caption is false of the scene, so that whoever sees and reads all of it is right every time, and
whoever does not is right in half of the cases.

The words alone must not reveal which caption is false. Both have the same pattern and wordings,
what is changed is drawn uniformly, as many scenes have two alike objects as three, and neither
caption names a composition that is held out from training (``tests/datasets/test_shapes_skills.py``
reads the words alone).
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from xmodal.datasets.image_file import write_image
from xmodal.datasets.shapes.captions import CAPTION_LENGTHS
from xmodal.datasets.shapes.grammar import COUNT_PATTERNS, PAIR_PATTERNS, WORDINGS, fill_pattern
from xmodal.datasets.shapes.pick import pick
from xmodal.datasets.shapes.record import Record
from xmodal.datasets.shapes.render import render_scene
from xmodal.datasets.shapes.scene import (
    COLOURS,
    OPPOSITE,
    SHAPES,
    SPLITS,
    TEXTURES,
    Scene,
    SceneObject,
    direction,
    is_held_out,
    sample_skill_scene,
)
from xmodal.datasets.shapes.statements import Description, Statement
from xmodal.files import write_json

_MAX_TRIES = 50
_VALUES = {'colour': tuple(COLOURS), 'texture': TEXTURES, 'shape': SHAPES}


class MinimalPair(NamedTuple):
    """Two captions, of which the first is true of a scene."""

    text: str
    false_text: str


def write_skills(folder: Path, seed: int, count: int, size: int) -> list[Record]:
    """``SKILL.json`` in SugarCrepe's layout, and the ``images`` of all skills.

    Args:
        folder: output folder.
        seed: seed of all random choices.
        count: number of scenes.
        size: side of an image, in pixels.

    Returns:
        The scenes, without captions.
    """
    (folder / 'images').mkdir(parents=True, exist_ok=True)
    files: dict[str, dict] = {skill: {} for skill in SKILLS}
    records = []
    for index in tqdm(range(count), 'drawing skills', unit='scene'):
        scene, pairs = generate_pairs(seed, index)
        name = f'skills_{index:06d}.png'
        image, masks = render_scene(scene, size)
        write_image(folder / 'images' / name, image)
        records.append(Record.rendered(scene, (), masks, size, name))
        for skill, pair in pairs.items():
            texts = {'caption': pair.text, 'negative_caption': pair.false_text}
            files[skill][str(index)] = {'filename': name, **texts}
    for skill, content in files.items():
        write_json(folder / f'{skill}.json', content)
    return records


def generate_pairs(seed: int, index: int) -> tuple[Scene, dict[str, MinimalPair]]:
    """A scene with one pair of each skill that it has one for; the same for the same arguments."""
    scene = sample_skill_scene(seed, index)
    rng = np.random.default_rng([seed, len(SPLITS), index, 1])
    pairs = {skill: _sample_pair(scene, change, rng) for skill, change in SKILLS.items()}
    return scene, {skill: pair for skill, pair in pairs.items() if pair}


def _sample_pair(scene: Scene, change: Callable, rng: np.random.Generator) -> MinimalPair | None:
    """A pair about two objects that look like no other, and for counts about those alike."""
    unique = scene.unique_objects()
    links = [(a, name, b) for a, b in permutations(unique, 2) if (name := direction(a, b))]
    for _ in range(_MAX_TRIES):
        a, name, b = pick(links, rng)
        mentions, patterns = [_describe(obj, rng) for obj in (a, b)], PAIR_PATTERNS
        if change is _change_count:
            alike = [obj for obj in scene.objects if obj not in unique]
            mentions.append(Description(alike[0].shape, alike[0].colour, count=len(alike)))
            patterns = COUNT_PATTERNS
        statement = Statement(tuple(mentions), ((name, (0, 1)),))
        changed = change(statement, rng)
        if changed is None or changed.holds(scene) or not _may_be_said(statement, changed):
            continue
        pattern, wording = pick(patterns, rng), int(rng.integers(2))
        text, false_text = (_word(pattern, s, wording) for s in (statement, changed))
        if len(text.split()) in CAPTION_LENGTHS:
            return MinimalPair(text, false_text)
    return None


def _describe(obj: SceneObject, rng: np.random.Generator) -> Description:
    """Always names colour and shape; size and texture in half of the cases, whichever they are."""
    size = obj.size if rng.random() < 0.5 else None
    texture = obj.texture if rng.random() < 0.5 else None
    return Description(obj.shape, obj.colour, size, texture)


def _may_be_said(*statements: Statement) -> bool:
    """Whether no statement names a composition that is held out from training."""
    return not any(
        is_held_out(statement.mentions[a], name, statement.mentions[b])
        for statement in statements
        for name, (a, b) in statement.relations
    )


def _word(pattern: str, statement: Statement, wording: int) -> str:
    """The sentence, with the first or the second wording of everything that has two."""

    def say(name: str) -> str:
        return WORDINGS[name][wording % len(WORDINGS[name])]

    adjectives = [[say(x) for x in (m.size, m.texture) if x] for m in statement.mentions]
    directions = [say(name) for name, _ in statement.relations]
    return fill_pattern(pattern, statement.mentions, adjectives, directions)


def _change_attribute(statement: Statement, rng: np.random.Generator) -> Statement:
    """Another colour, or texture if it is named, of one object.

    Sizes stay: small objects find a place more often, so that "large" would more often be false.
    """
    index = int(rng.integers(2))
    named = [x for x in ('colour', 'texture') if getattr(statement.mentions[index], x)]
    return _with_other(statement, index, pick(named, rng), rng)


def _change_object(statement: Statement, rng: np.random.Generator) -> Statement:
    """Another shape in the place of one object."""
    return _with_other(statement, int(rng.integers(2)), 'shape', rng)


def _change_relation(statement: Statement, rng: np.random.Generator) -> Statement:
    """The opposite direction."""
    ((name, indices),) = statement.relations
    return replace(statement, relations=((OPPOSITE[name], indices),))


def _change_count(statement: Statement, rng: np.random.Generator) -> Statement:
    """Three objects for two, and two for three."""
    *objects, group = statement.mentions
    return replace(statement, mentions=(*objects, replace(group, count=5 - group.count)))


def _change_binding(statement: Statement, rng: np.random.Generator) -> Statement | None:
    """The colours of the two objects exchanged; None if they have one colour or one shape."""
    a, b = statement.mentions
    if a.colour == b.colour or a.shape == b.shape:
        return None
    mentions = replace(a, colour=b.colour), replace(b, colour=a.colour)
    return replace(statement, mentions=mentions)


def _with_other(
    statement: Statement, index: int, attribute: str, rng: np.random.Generator
) -> Statement:
    mentions = list(statement.mentions)
    old = getattr(mentions[index], attribute)
    new = pick([value for value in _VALUES[attribute] if value != old], rng)
    mentions[index] = replace(mentions[index], **{attribute: new})
    return replace(statement, mentions=tuple(mentions))


#: What is changed, by the name of the skill that notices it.
SKILLS: dict[str, Callable[[Statement, np.random.Generator], Statement | None]] = {
    'attribute': _change_attribute,
    'relation': _change_relation,
    'count': _change_count,
    'binding': _change_binding,
    'object': _change_object,
}
