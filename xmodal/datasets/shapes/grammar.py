"""What people would say of a scene: statements with a truth, and their wording."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import TypeVar

import numpy as np

from xmodal.datasets.shapes.scene import (
    COLOURS,
    DIRECTIONS,
    OPPOSITE,
    SHAPES,
    SPLITS,
    Scene,
    Thing,
    direction,
    is_held_out,
    stands,
)

SPECIAL_TOKENS = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
CAPTIONS_A_SCENE = 5
WORDS = range(8, 21)  # in a caption
NUMBERS = {2: 'two', 3: 'three'}

# The ways to say a direction, size or texture; what is not listed is said as it is called.
WORDINGS = {
    'left of': ('left of', 'to the left of'),
    'right of': ('right of', 'to the right of'),
    'above': ('above', 'over'),
    'below': ('below', 'under'),
    'small': ('small', 'little'),
    'large': ('large', 'big'),
    'solid': ('plain',),
    'striped': ('striped',),
    'dotted': ('dotted', 'spotted'),
}

# Sentences about two things: the second is {r}, a direction, of the first. A capital is the phrase
# with a definite article, {is} and {lies} agree with the first thing.
_PAIR = (
    '{A} {is} {r} {B}',
    '{a} {r} {b}',
    'there {is} {a} {r} {B}',
    '{a} can be seen {r} {b}',
    '{A} {lies} {r} {B}',
    'a picture of {a} {r} {b}',
    '{r} {B} there {is} {a}',
)
# The first thing is {r} of the second and {s} of the third.
_FORK = (
    '{A} {is} {r} {B} and {s} {C}',
    '{a} {r} {b} and {s} {c}',
    'there {is} {a} {r} {B} and {s} {C}',
    '{A} that {is} {r} {B} {lies} {s} {C}',
    '{s} {C} and {r} {B} {is} {a}',
)
# The first thing is {r} of the second, which is {s} of the third.
_CHAIN = (
    '{A} {is} {r} {B} which {is_b} {s} {C}',
    '{a} {r} {b} that {is_b} {s} {c}',
    'there {is} {a} {r} {B} that {lies_b} {s} {C}',
)
# The first thing is between the other two.
_BETWEEN = (
    '{A} {is} between {B} and {C}',
    'there {is} {a} between {b} and {c}',
    '{a} can be seen between {B} and {C}',
    'between {b} and {c} {lies} {a}',
)
# The first thing is {r} of the second, and the third is there too: things that are counted.
_COUNT = (
    'there {is_c} {c} and {A} {is} {r} {B}',
    '{A} {is} {r} {B} and there {is_c} {c}',
    'a picture of {c} where {A} {is} {r} {B}',
)

Item = TypeVar('Item')
Referent = tuple[Thing, ...]  # what a noun phrase stands for: one thing, or several that are alike
Relation = tuple[str, tuple[int, ...]]  # name, and the places of its terms among the mentions


@dataclass(frozen=True)
class Description:
    """What a noun phrase says of one thing, or of several that are alike; None where it is silent.

    Attributes:
        shape, colour, size, texture: of each.
        count: how many there are: 1 for "a" and "the", which ask for at least one, otherwise the
            exact number.
    """

    shape: str
    colour: str
    size: str | None = None
    texture: str | None = None
    count: int = 1

    def fits(self, thing: Thing) -> bool:
        """Whether the attributes are true of a thing."""
        return (
            self.colour == thing.colour
            and self.shape == thing.shape
            and self.size in (None, thing.size)
            and self.texture in (None, thing.texture)
        )

    def referents(self, scene: Scene) -> list[Referent]:
        """What the phrase may stand for in a scene."""
        fitting = [thing for thing in scene.things if self.fits(thing)]
        if self.count == 1:
            return [(thing,) for thing in fitting]
        return [tuple(fitting)] if len(fitting) == self.count else []


@dataclass(frozen=True)
class Statement:
    """The logical form of a sentence.

    Attributes:
        mentions: the noun phrases; different ones stand for different things.
        relations: name and places in ``mentions``, ``('left of', (0, 1))`` or
            ``('between', (0, 1, 2))``; all hold, of each of several things that are alike.
    """

    mentions: tuple[Description, ...]
    relations: tuple[Relation, ...]

    def holds(self, scene: Scene) -> bool:
        """Whether a scene has things that make the statement true."""
        return any(
            self._is_true_of(referents)
            for referents in product(*(mention.referents(scene) for mention in self.mentions))
            if _are_apart(referents)
        )

    def _is_true_of(self, referents: tuple[Referent, ...]) -> bool:
        return all(
            stands(name, *things)
            for name, places in self.relations
            for things in product(*(referents[place] for place in places))
        )


def _are_apart(referents: Iterable[Referent]) -> bool:
    """Whether no thing is in two of the referents."""
    things = [id(thing) for referent in referents for thing in referent]
    return len(set(things)) == len(things)


class _Narrator:
    """Writes sentences about one scene, whose phrases each fit one thing, or one group, alone."""

    def __init__(self, scene: Scene, rng: np.random.Generator) -> None:
        self.scene = scene
        self.rng = rng
        referents = _referents(scene)
        self.links = [
            (a, name, b)
            for a, b in permutations(referents, 2)
            if _are_apart((a, b)) and (name := _common_direction(a, b))
        ]
        self.held_out_links = [
            (a, name, b)
            for a, name, b in self.links
            if any(is_held_out(x, name, y) for x, y in product(a, b))
        ]
        self.counted = [referent for referent in referents if len(referent) > 1]

    def write(self, held_out: bool) -> tuple[str, Statement]:
        """A sentence about two or three things.

        Args:
            held_out: whether to name a held-out composition, if there is one to name.
        """
        first, name, second = self._pick((held_out and self.held_out_links) or self.links)
        apart = [group for group in self.counted if _are_apart((first, second, group))]
        if apart and self.rng.random() < 0.4:
            things = (first, second, self._pick(apart))
            return self._word(_COUNT, things, ((name, (0, 1)),))
        more = [
            link
            for link in self.links
            if link[0] in (first, second) and _are_apart((first, second, link[2]))
        ]
        if not more or self.rng.random() < 0.3:
            return self._word(_PAIR, (first, second), ((name, (0, 1)),))
        across = [link for link in more if link[:2] == (first, OPPOSITE[name])]
        if across and self.rng.random() < 0.4:
            things = (first, second, self._pick(across)[2])
            return self._word(_BETWEEN, things, (('between', (0, 1, 2)),))
        start, other, third = self._pick(more)
        templates, place = (_FORK, 0) if start is first else (_CHAIN, 1)
        relations = ((name, (0, 1)), (other, (place, 2)))
        return self._word(templates, (first, second, third), relations)

    def _word(
        self,
        templates: tuple[str, ...],
        things: tuple[Referent, ...],
        relations: tuple[Relation, ...],
    ) -> tuple[str, Statement]:
        mentions = tuple(self._describe(referent) for referent in things)
        parts = {}
        for letter, mention in zip('abc', mentions, strict=False):
            definite, indefinite = self._phrases(mention)
            parts |= {letter: indefinite, letter.upper(): definite}
        for suffix, mention in zip(('', '_b', '_c'), mentions, strict=False):
            single = mention.count == 1
            parts |= {f'is{suffix}': 'is' if single else 'are'}
            parts |= {f'lies{suffix}': 'lies' if single else 'lie'}
        for letter, (name, _) in zip('rs', relations, strict=False):
            parts[letter] = self._say(name)
        return self._pick(templates).format(**parts), Statement(mentions, relations)

    def _describe(self, referent: Referent) -> Description:
        """Names colour and shape always, size and texture now and then or when they are needed."""
        thing = referent[0]
        while True:
            size = thing.size if self.rng.random() < 0.5 else None
            odds = 0.2 if thing.texture == 'solid' else 0.6
            texture = thing.texture if self.rng.random() < odds else None
            found = Description(thing.shape, thing.colour, size, texture, len(referent))
            if found.referents(self.scene) == [referent]:
                return found

    def _phrases(self, mention: Description) -> tuple[str, str]:
        """The noun phrase with its definite and its indefinite article."""
        looks = [self._say(name) for name in (mention.size, mention.texture) if name]
        noun = plural(mention.shape) if mention.count > 1 else mention.shape
        phrase = ' '.join([*looks, mention.colour, noun])
        if mention.count > 1:
            phrase = f'{NUMBERS[mention.count]} {phrase}'
            return f'the {phrase}', phrase
        return f'the {phrase}', f'{"an" if phrase[0] in "aeiou" else "a"} {phrase}'

    def _say(self, name: str) -> str:
        return self._pick(WORDINGS.get(name, (name,)))

    def _pick(self, options: Sequence[Item]) -> Item:
        return options[self.rng.integers(len(options))]


def _referents(scene: Scene) -> list[Referent]:
    """Things that a phrase can tell from all others, and groups of the same colour and shape."""
    groups: dict[tuple[str, str], Referent] = {}
    for thing in scene.things:
        kind = (thing.shape, thing.colour)
        groups[kind] = (*groups.get(kind, ()), thing)
    looks = [(t.shape, t.colour, t.size, t.texture) for t in scene.things]
    singles = [
        (thing,) for thing, look in zip(scene.things, looks, strict=True) if looks.count(look) == 1
    ]
    return [*singles, *(group for group in groups.values() if len(group) in NUMBERS)]


def _common_direction(a: Referent, b: Referent) -> str | None:
    """The direction in which each of ``a`` lies from each of ``b``; None if they differ."""
    names = {direction(x, y) for x, y in product(a, b)}
    return names.pop() if len(names) == 1 else None


def write_captions(seed: int, split: str, scene: Scene) -> list[tuple[str, Statement]]:
    """Five differing captions of a scene, each with its statement, all true of the scene.

    The same arguments give the same captions. The first caption of a scene with held-out
    compositions names one of them.
    """
    rng = np.random.default_rng([seed, SPLITS.index(split), scene.index, 1])
    narrator = _Narrator(scene, rng)
    captions: dict[str, Statement] = {}
    while len(captions) < CAPTIONS_A_SCENE:
        text, statement = narrator.write(held_out=not captions)
        if len(text.split()) in WORDS:
            captions.setdefault(text, statement)
    return list(captions.items())


def plural(shape: str) -> str:
    """The plural of a noun."""
    return f'{shape}es' if shape.endswith('s') else f'{shape}s'


def vocabulary() -> list[str]:
    """Every word of the grammar after BERT's special tokens, in a fixed order."""
    templates = (*_PAIR, *_FORK, *_CHAIN, *_BETWEEN, *_COUNT)
    said = [
        *(word for text in templates for word in text.split() if not word.startswith('{')),
        *(word for wording in WORDINGS.values() for text in wording for word in text.split()),
        *('a', 'an', 'the', 'is', 'are', 'lies', 'lie', *NUMBERS.values(), *DIRECTIONS, *COLOURS),
        *(form for shape in SHAPES for form in (shape, plural(shape))),
    ]
    return [*SPECIAL_TOKENS, *sorted({word for text in said for word in text.split()})]
