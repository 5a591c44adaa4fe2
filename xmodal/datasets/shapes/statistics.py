"""Measures how well captions tell scenes apart, and what a bag of words would miss."""

from dataclasses import replace
from statistics import fmean

from tqdm import tqdm

from xmodal.datasets.shapes.grammar import Statement, write_captions
from xmodal.datasets.shapes.scene import (
    DIRECTIONS,
    Scene,
    holds_held_out,
    is_held_out,
    sample_scene,
)


def measure(seed: int, split: str, count: int) -> dict[str, float]:
    """Statistics of the first ``count`` scenes of a split, by what they say.

    Each caption's statement is evaluated on each scene. "a" and "the" both ask for at least one
    fitting thing, so the numbers of scenes are upper bounds of what a strict reader would count.
    """
    scenes = [sample_scene(seed, split, index) for index in range(count)]
    owners, texts, statements = [], [], []
    for scene in scenes:
        for text, statement in write_captions(seed, split, scene):
            owners.append(scene)
            texts.append(text)
            statements.append(statement)
    true_of, same_things = [], []
    for statement in tqdm(statements, 'evaluating', unit='caption'):
        candidates = [scene for scene in scenes if replace(statement, relations=()).holds(scene)]
        same_things.append(len(candidates))
        true_of.append(sum(statement.holds(scene) for scene in candidates))
    pairs = list(zip(statements, owners, strict=True))
    return {
        'scenes a caption is true of': fmean(true_of),
        'captions true of one scene alone': fmean(n == 1 for n in true_of),
        'scenes that hold the things a caption names': fmean(same_things),
        'captions whose things are in another scene too': fmean(n > 1 for n in same_things),
        'captions false when their two things are exchanged': fmean(
            not exchanged(statement).holds(scene) for statement, scene in pairs
        ),
        'scenes with a held-out composition': fmean(map(holds_held_out, scenes)),
        'captions that name one': fmean(names_held_out(*pair) for pair in pairs),
        'captions with a count': fmean(any(m.count > 1 for m in s.mentions) for s in statements),
        'words a caption': fmean(len(text.split()) for text in texts),
    }


def exchanged(statement: Statement) -> Statement:
    """The statement with the first two noun phrases in each other's place."""
    first, second, *others = statement.mentions
    return replace(statement, mentions=(second, first, *others))


def names_held_out(statement: Statement, scene: Scene) -> bool:
    """Whether a true statement names a composition kept from training.

    "between" names two directions, which only the scene tells.
    """
    return any(
        is_held_out(statement.mentions[place], name, statement.mentions[seen_from])
        for _, (place, *others) in statement.relations
        for seen_from in others
        for name in DIRECTIONS
        if replace(statement, relations=((name, (place, seen_from)),)).holds(scene)
    )
