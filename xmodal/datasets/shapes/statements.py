"""Logical forms of captions: descriptions of objects, and statements that are true or false."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from xmodal.datasets.shapes.scene import Scene, SceneObject, relation_holds

Referent = tuple[SceneObject, ...]  # what a noun phrase refers to: one object, or a group of alike
Relation = tuple[str, tuple[int, ...]]  # name, and the indices of its terms among the mentions


@dataclass(frozen=True)
class Description:
    """The content of a noun phrase about one object, or a group of alike objects.

    Attributes:
        shape, colour, size, texture: of each object; None where the phrase does not say it. Only a
            referring expression may not say the colour.
        count: number of objects: 1 for "a" and "the", which ask for at least one, otherwise the
            exact number.
    """

    shape: str
    colour: str | None
    size: str | None = None
    texture: str | None = None
    count: int = 1

    def fits(self, obj: SceneObject) -> bool:
        """Whether an object has all the attributes."""
        return (
            self.shape == obj.shape
            and self.colour in (None, obj.colour)
            and self.size in (None, obj.size)
            and self.texture in (None, obj.texture)
        )

    def referents(self, scene: Scene) -> list[Referent]:
        """What the phrase may refer to in a scene."""
        fitting = [obj for obj in scene.objects if self.fits(obj)]
        if self.count == 1:
            return [(obj,) for obj in fitting]
        return [tuple(fitting)] if len(fitting) == self.count else []


@dataclass(frozen=True)
class Statement:
    """The logical form of a sentence.

    Attributes:
        mentions: the noun phrases; different ones refer to different objects.
        relations: name and indices into ``mentions``, ``('left of', (0, 1))`` or
            ``('between', (0, 1, 2))``. All of them hold, for each object of a group.
    """

    mentions: tuple[Description, ...]
    relations: tuple[Relation, ...]

    def holds(self, scene: Scene) -> bool:
        """Whether some objects of a scene make the statement true."""
        return any(
            self._is_true_of(referents)
            for referents in product(*(mention.referents(scene) for mention in self.mentions))
            if are_disjoint(referents)
        )

    def _is_true_of(self, referents: tuple[Referent, ...]) -> bool:
        return all(
            relation_holds(name, *objects)
            for name, indices in self.relations
            for objects in product(*(referents[index] for index in indices))
        )


def are_disjoint(referents: Iterable[Referent]) -> bool:
    """Whether no object belongs to two of the referents."""
    ids = [id(obj) for referent in referents for obj in referent]
    return len(set(ids)) == len(ids)
