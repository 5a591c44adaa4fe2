"""Captions of a scene, generated from the grammar together with their statements."""

from collections.abc import Sequence
from itertools import permutations, product

import numpy as np

from xmodal.datasets.shapes.grammar import (
    BETWEEN_PATTERNS,
    CHAIN_PATTERNS,
    COUNT_PATTERNS,
    COUNT_WORDS,
    FORK_PATTERNS,
    PAIR_PATTERNS,
    WORDINGS,
    fill_pattern,
)
from xmodal.datasets.shapes.pick import Item, pick
from xmodal.datasets.shapes.scene import OPPOSITE, SPLITS, Scene, direction, is_held_out
from xmodal.datasets.shapes.statements import (
    Description,
    Referent,
    Relation,
    Statement,
    are_disjoint,
)

CAPTIONS_PER_SCENE = 5
CAPTION_LENGTHS = range(8, 21)  # in words


def generate_captions(seed: int, split: str, scene: Scene) -> list[tuple[str, Statement]]:
    """Five different captions of a scene with their statements, which are true of the scene.

    The same arguments give the same captions. The first caption of a scene with held-out
    compositions names one of them.
    """
    rng = np.random.default_rng([seed, SPLITS.index(split), scene.index, 1])
    generator = _CaptionGenerator(scene, rng)
    captions: dict[str, Statement] = {}
    while len(captions) < CAPTIONS_PER_SCENE:
        text, statement = generator.generate(held_out=not captions)
        if len(text.split()) in CAPTION_LENGTHS:
            captions.setdefault(text, statement)
    return list(captions.items())


class _CaptionGenerator:
    """Generates sentences about one scene; each phrase fits exactly one object, or one group."""

    def __init__(self, scene: Scene, rng: np.random.Generator) -> None:
        self.scene = scene
        self.rng = rng
        referents = _referents(scene)
        self.links = [
            (a, name, b)
            for a, b in permutations(referents, 2)
            if are_disjoint((a, b)) and (name := _common_direction(a, b))
        ]
        self.held_out_links = [
            (a, name, b)
            for a, name, b in self.links
            if any(is_held_out(x, name, y) for x, y in product(a, b))
        ]
        self.groups = [referent for referent in referents if len(referent) > 1]

    def generate(self, held_out: bool) -> tuple[str, Statement]:
        """A sentence about two or three objects.

        Args:
            held_out: whether to name a held-out composition, if the scene has one.
        """
        first, name, second = self._pick((held_out and self.held_out_links) or self.links)
        groups = [group for group in self.groups if are_disjoint((first, second, group))]
        if groups and self.rng.random() < 0.4:
            referents = (first, second, self._pick(groups))
            return self._word(COUNT_PATTERNS, referents, ((name, (0, 1)),))
        continuations = [
            link
            for link in self.links
            if link[0] in (first, second) and are_disjoint((first, second, link[2]))
        ]
        if not continuations or self.rng.random() < 0.3:
            return self._word(PAIR_PATTERNS, (first, second), ((name, (0, 1)),))
        opposite = [link for link in continuations if link[:2] == (first, OPPOSITE[name])]
        if opposite and self.rng.random() < 0.4:
            referents = (first, second, self._pick(opposite)[2])
            return self._word(BETWEEN_PATTERNS, referents, (('between', (0, 1, 2)),))
        start, other_name, third = self._pick(continuations)
        patterns, index = (FORK_PATTERNS, 0) if start is first else (CHAIN_PATTERNS, 1)
        relations = ((name, (0, 1)), (other_name, (index, 2)))
        return self._word(patterns, (first, second, third), relations)

    def _word(
        self,
        patterns: tuple[str, ...],
        referents: tuple[Referent, ...],
        relations: tuple[Relation, ...],
    ) -> tuple[str, Statement]:
        """The wording of relations between referents, and its statement."""
        mentions = tuple(self._describe(referent) for referent in referents)
        adjectives = [
            [self._say(name) for name in (mention.size, mention.texture) if name]
            for mention in mentions
        ]
        directions = [self._say(name) for name, _ in relations]
        text = fill_pattern(self._pick(patterns), mentions, adjectives, directions)
        return text, Statement(mentions, relations)

    def _describe(self, referent: Referent) -> Description:
        """Always names colour and shape; size and texture sometimes, or when they are needed."""
        obj = referent[0]
        while True:
            size = obj.size if self.rng.random() < 0.5 else None
            texture_share = 0.2 if obj.texture == 'solid' else 0.6
            texture = obj.texture if self.rng.random() < texture_share else None
            description = Description(obj.shape, obj.colour, size, texture, len(referent))
            if description.referents(self.scene) == [referent]:
                return description

    def _say(self, name: str) -> str:
        return self._pick(WORDINGS.get(name, (name,)))

    def _pick(self, options: Sequence[Item]) -> Item:
        return pick(options, self.rng)


def _referents(scene: Scene) -> list[Referent]:
    """Objects that a phrase can identify, and groups of the same colour and shape."""
    groups: dict[tuple[str, str], Referent] = {}
    for obj in scene.objects:
        kind = (obj.shape, obj.colour)
        groups[kind] = (*groups.get(kind, ()), obj)
    appearances = [(o.shape, o.colour, o.size, o.texture) for o in scene.objects]
    singles = [
        (obj,)
        for obj, appearance in zip(scene.objects, appearances, strict=True)
        if appearances.count(appearance) == 1
    ]
    return [*singles, *(group for group in groups.values() if len(group) in COUNT_WORDS)]


def _common_direction(a: Referent, b: Referent) -> str | None:
    """The direction of each object of ``a`` from each of ``b``; None if the directions differ."""
    names = {direction(x, y) for x, y in product(a, b)}
    return names.pop() if len(names) == 1 else None
