"""What people would say of a scene: statements with a truth, and their wording."""

from dataclasses import dataclass

import numpy as np

from xmodal.datasets.shapes.scene import (
    COLOURS,
    RELATIONS,
    SHAPES,
    SIZES,
    TEXTURES,
    Scene,
    Thing,
    is_held_out,
    relation,
    relations,
)

SPECIAL_TOKENS = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
CAPTIONS_A_SCENE = 5


@dataclass(frozen=True)
class Description:
    """Attributes that a noun phrase names; None where it is silent."""

    shape: str
    colour: str
    size: str | None = None
    texture: str | None = None

    def fits(self, thing: Thing) -> bool:
        """Whether the phrase is true of a thing."""
        named = (name for name in ('shape', 'colour', 'size', 'texture') if getattr(self, name))
        return all(getattr(self, name) == getattr(thing, name) for name in named)

    def phrase(self) -> str:
        """Without article: "small striped blue square"."""
        words = (self.size, self.texture, self.colour, self.shape)
        return ' '.join(word for word in words if word)


@dataclass(frozen=True)
class Statement:
    """Relations that all hold: ``(first, name, second)`` each."""

    relations: tuple[tuple[Description, str, Description], ...]

    def holds(self, scene: Scene) -> bool:
        """Whether a scene has things that make the statement true, one thing a description."""
        descriptions = list(dict.fromkeys(d for a, _, b in self.relations for d in (a, b)))
        return self._assign(scene, descriptions, {})

    def _assign(
        self, scene: Scene, left: list[Description], chosen: dict[Description, Thing]
    ) -> bool:
        if not left:
            return all(relation(chosen[a], chosen[b]) == name for a, name, b in self.relations)
        return any(
            self._assign(scene, left[1:], {**chosen, left[0]: thing})
            for thing in scene.things
            if left[0].fits(thing) and thing not in chosen.values()
        )


# Wordings of a statement: {a} is {r} {b}, and of one with a third thing, {a} {r} {b} {s} {c}. An
# article is written where the template says so.
_TWO = (
    'the {a} is {r} the {b}',
    'a {a} {r} a {b}',
    'there is a {a} {r} the {b}',
    'a {a} can be seen {r} a {b}',
    'the {a} lies {r} the {b}',
)
_THREE = (
    'the {a} is {r} the {b} and {s} the {c}',
    'a {a} {r} a {b} and {s} a {c}',
    'there is a {a} {r} the {b} and {s} the {c}',
    'a {a} {s} a {c} and {r} a {b}',
    'the {a} that is {r} the {b} lies {s} the {c}',
)
_WORDING = {
    'left of': ('left of', 'to the left of'),
    'right of': ('right of', 'to the right of'),
    'above': ('above', 'over'),
    'below': ('below', 'under'),
}


def describe(thing: Thing, rng: np.random.Generator) -> Description:
    """Names colour and shape always, size and texture often."""
    size = thing.size if rng.random() < 0.6 else None
    texture = thing.texture if thing.texture != 'solid' and rng.random() < 0.7 else None
    return Description(thing.shape, thing.colour, size, texture)


def write_captions(scene: Scene, rng: np.random.Generator) -> list[tuple[str, Statement]]:
    """Five differing captions of a scene, each with its statement, all true.

    The first caption of a scene with held-out compositions names one of them.
    """
    clear = relations(scene)
    held_out = [triple for triple in clear if is_held_out(*triple)]
    captions: dict[str, Statement] = {}
    while len(captions) < CAPTIONS_A_SCENE:
        pool = clear if captions or not held_out else held_out
        text, statement = _write(pool[rng.integers(len(pool))], clear, rng)
        captions.setdefault(text, statement)
    return list(captions.items())


def _write(
    triple: tuple[Thing, str, Thing],
    clear: list[tuple[Thing, str, Thing]],
    rng: np.random.Generator,
) -> tuple[str, Statement]:
    """Words one relation, and mostly a second one of the same thing."""
    first, name, second = triple
    a, b = describe(first, rng), describe(second, rng)
    parts = {'a': a.phrase(), 'b': b.phrase(), 'r': _pick(_WORDING[name], rng)}
    more = [t for t in clear if t[0] == first and t[2] != second]
    if not more or rng.random() < 0.25:
        return _pick(_TWO, rng).format(**parts), Statement(((a, name, b),))
    _, other, third = more[rng.integers(len(more))]
    c = describe(third, rng)
    parts |= {'c': c.phrase(), 's': _pick(_WORDING[other], rng)}
    return _pick(_THREE, rng).format(**parts), Statement(((a, name, b), (a, other, c)))


def _pick(options: tuple[str, ...], rng: np.random.Generator) -> str:
    return options[rng.integers(len(options))]


def vocabulary() -> list[str]:
    """Every word of the grammar after BERT's special tokens, in a fixed order."""
    names = [*SHAPES, *COLOURS, *SIZES, *TEXTURES, *RELATIONS]
    templates = [*_TWO, *_THREE, *(w for wordings in _WORDING.values() for w in wordings)]
    fields = {f'{{{field}}}' for field in 'abcrs'}
    words = {word for text in (*names, *templates) for word in text.split()} - fields
    return [*SPECIAL_TOKENS, *sorted(words)]
