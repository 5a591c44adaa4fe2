"""Measures how well captions distinguish scenes, and what a bag of words would miss."""

from dataclasses import replace
from statistics import fmean

from tqdm import tqdm

from xmodal.datasets.shapes.captions import generate_captions
from xmodal.datasets.shapes.scene import (
    DIRECTIONS,
    Scene,
    has_held_out_composition,
    is_held_out,
    sample_scene,
)
from xmodal.datasets.shapes.statements import Statement


def measure(seed: int, split: str, count: int) -> dict[str, float]:
    """Statistics of the first ``count`` scenes of a split, by their names.

    Each caption's statement is evaluated on each scene. "a" and "the" both ask for at least one
    fitting object, so the numbers of scenes are upper bounds of what a strict reader would count.
    """
    scenes = [sample_scene(seed, split, index) for index in range(count)]
    scene_of, texts, statements = [], [], []
    for scene in scenes:
        for text, statement in generate_captions(seed, split, scene):
            scene_of.append(scene)
            texts.append(text)
            statements.append(statement)
    num_true, num_with_objects = [], []
    for statement in tqdm(statements, 'evaluating', unit='caption'):
        candidates = [scene for scene in scenes if replace(statement, relations=()).holds(scene)]
        num_with_objects.append(len(candidates))
        num_true.append(sum(statement.holds(scene) for scene in candidates))
    pairs = list(zip(statements, scene_of, strict=True))
    return {
        'scenes that a caption is true of': fmean(num_true),
        'captions that are true of only one scene': fmean(n == 1 for n in num_true),
        'scenes with the objects of a caption': fmean(num_with_objects),
        'captions whose objects occur in another scene': fmean(n > 1 for n in num_with_objects),
        'captions that are false with two objects swapped': fmean(
            not swap_mentions(statement).holds(scene) for statement, scene in pairs
        ),
        'scenes with a held-out composition': fmean(map(has_held_out_composition, scenes)),
        'captions that name a held-out composition': fmean(names_held_out(*pair) for pair in pairs),
        'captions with a count': fmean(any(m.count > 1 for m in s.mentions) for s in statements),
        'words per caption': fmean(len(text.split()) for text in texts),
    }


def swap_mentions(statement: Statement) -> Statement:
    """The statement with its first two noun phrases swapped."""
    first, second, *others = statement.mentions
    return replace(statement, mentions=(second, first, *others))


def names_held_out(statement: Statement, scene: Scene) -> bool:
    """Whether a true statement names a composition that is held out from training.

    "between" stands for two directions, which only the scene determines.
    """
    return any(
        is_held_out(statement.mentions[index], name, statement.mentions[other])
        for _, (index, *others) in statement.relations
        for other in others
        for name in DIRECTIONS
        if replace(statement, relations=((name, (index, other)),)).holds(scene)
    )
