"""Phrases for the objects of a scene, as questions about it need them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from xmodal.datasets.shapes.grammar import WORDINGS
from xmodal.datasets.shapes.pick import Item, pick
from xmodal.datasets.shapes.scene import COLOURS, Scene, SceneObject, direction
from xmodal.datasets.shapes.statements import Description


class Mention(NamedTuple):
    """A noun phrase, without its article, and the object that it names; None if there is none."""

    phrase: str
    obj: SceneObject | None


class Target(NamedTuple):
    """An object that a question is about.

    Attributes:
        obj: the object.
        location: where it is, " left of the red disc"; '' if it is known without.
        anchors: the objects that the location names.
    """

    obj: SceneObject
    location: str = ''
    anchors: tuple[Mention, ...] = ()


class ScenePhraser:
    """Chooses objects of one scene and phrases for them.

    Args:
        split: split of the scene; only test scenes may be asked about held-out compositions.
        scene: the scene.
        rng: makes all random choices.
    """

    def __init__(self, split: str, scene: Scene, rng: np.random.Generator) -> None:
        self.scene, self.in_test, self.rng = scene, split == 'test', rng
        self.unique = scene.unique_objects()

    def _find(self, attribute: str) -> Target | None:
        """An object identified by an attribute, alone or with a location."""
        identified, located = [], []
        for obj in self.scene.objects:
            value = getattr(obj, attribute)
            rivals = [
                other
                for other in self.scene.objects
                if other is not obj and getattr(other, attribute) == value
            ]
            if not rivals:
                identified.append(obj)
            located += [
                (obj, name, anchor)
                for anchor in self.unique
                if anchor is not obj
                and anchor not in rivals
                and (name := direction(obj, anchor))
                and all(direction(rival, anchor) not in (None, name) for rival in rivals)
            ]
        if located and (not identified or self._chance(0.7)):
            obj, name, anchor = self._pick(located)
            phrase = self._phrase(self._describe(anchor))
            return Target(obj, f' {self._say(name)} the {phrase}', (Mention(phrase, anchor),))
        return Target(self._pick(identified)) if identified else None

    def _find_anchor(self) -> SceneObject | None:
        """An object unlike all others, from which each of them is in a clear direction."""
        anchors = [
            obj
            for obj in self.unique
            if all(direction(other, obj) for other in self.scene.objects if other is not obj)
        ]
        return self._pick(anchors) if anchors else None

    def _absent_variant(self, description: Description) -> Description:
        """One attribute changed so that no object fits, if possible to that of another object."""
        variants = [
            *(replace(description, colour=obj.colour) for obj in self.scene.objects),
            *(replace(description, shape=obj.shape) for obj in self.scene.objects),
        ]
        absent = [variant for variant in variants if not variant.referents(self.scene)]
        while not absent:
            variant = replace(description, colour=self._pick(tuple(COLOURS)))
            absent = [] if variant.referents(self.scene) else [variant]
        return self._pick(absent)

    def _describe(self, obj: SceneObject) -> Description:
        """Always names colour and shape; size and texture sometimes."""
        return Description(
            obj.shape,
            obj.colour,
            obj.size if self._chance(0.2) else None,
            obj.texture if self._chance(0.2) else None,
        )

    def _phrase(self, description: Description) -> str:
        adjectives = [self._say(name) for name in (description.size, description.texture) if name]
        return ' '.join([*adjectives, description.colour, description.shape])

    def _mention(self, phrase: str, description: Description) -> Mention:
        """A phrase with the first object that fits it."""
        fitting = [obj for obj in self.scene.objects if description.fits(obj)]
        return Mention(phrase, fitting[0] if fitting else None)

    def _say(self, name: str) -> str:
        return self._pick(WORDINGS[name])

    def _pick(self, options: Sequence[Item]) -> Item:
        return pick(options, self.rng)

    def _chance(self, probability: float) -> bool:
        return self.rng.random() < probability
