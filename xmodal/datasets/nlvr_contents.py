"""What a statement about NLVR can say of a box or a tower, in words and as a test."""

import random
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from xmodal.datasets.nlvr_scene import COLORS, SHAPES, Box, Item

NAMES = tuple(COLORS.values())
_NUMBERS = ('no', 'one', 'two', 'three', 'four', 'five')


class Quantity(NamedTuple):
    """A number of things, "at least two", and whether a number is meant."""

    text: str
    is_one: bool
    fits: Callable[[int], bool]

    def of(self, noun: str) -> str:
        """The quantity with its noun."""
        plural = f'{noun}es' if noun.endswith('x') else f'{noun}s'
        return f'{self.text} {noun if self.is_one else plural}'


class Things(NamedTuple):
    """Items of one kind, "black square", and whether an item is one."""

    text: str
    fits: Callable[[Item], bool]

    def count(self, items: Iterable[Item]) -> int:
        """How many there are."""
        return sum(map(self.fits, items))


class Content(NamedTuple):
    """What a box has, "two black items", and whether one has it."""

    text: str
    holds: Callable[[Box], bool]


def draw_quantity(rng: random.Random, most: int = 3) -> Quantity:
    """One to ``most``, exactly or at least, or none."""
    number = rng.randint(1, most)
    word, is_one = rng.choice((str(number), _NUMBERS[number])), number == 1
    if is_one and rng.random() < 0.4:
        return Quantity('a', True, lambda n: n >= 1)
    kind = rng.choice(('', '', '', 'exactly ', 'only ', 'at least '))
    if rng.random() < 0.05:
        return Quantity('no', True, lambda n: n == 0)
    if kind == 'at least ':
        return Quantity(kind + word, is_one, lambda n: n >= number)
    return Quantity(kind + word, is_one, lambda n: n == number)


def draw_things(rng: random.Random, block: str | None = None) -> Things:
    """Items of a colour, a shape or both; with ``block``, blocks of a colour."""
    color, shape = rng.choice(NAMES), rng.choice(SHAPES)
    noun, kind = block or rng.choice(('item', 'object')), rng.randrange(1 if block else 3)
    if kind == 0:
        return Things(f'{color} {noun}', lambda x: x.color == color)
    if kind == 1:
        return Things(shape, lambda x: x.shape == shape)
    return Things(f'{color} {shape}', lambda x: (x.color, x.shape) == (color, shape))


def draw_place(rng: random.Random) -> Things:
    """What touches a wall of its box, or does not."""
    place, fits = rng.choice(
        (
            (('the wall', 'the edge', 'an edge'), _touches_wall),
            (('the base', 'the bottom', 'the bottom edge', 'the bottom of a box'), _touches_base),
            (('the corner', 'a corner'), _touches_corner),
        )
    )
    text = f'{rng.choice(("touching", "touching", "closely touching"))} {rng.choice(place)}'
    if rng.random() < 0.2:
        return Things(f'not {text}', lambda x: not fits(x))
    return Things(text, fits)


def _touches_wall(item: Item) -> bool:
    return 0 in (item.left, item.right_gap, item.top, item.bottom_gap)


def _touches_base(item: Item) -> bool:
    return item.bottom_gap == 0


def _touches_corner(item: Item) -> bool:
    return 0 in (item.left, item.right_gap) and 0 in (item.top, item.bottom_gap)


def draw_box_content(rng: random.Random, shapes: bool) -> Content:
    """What a box has; ``shapes`` says whether shapes are worth a word."""
    kinds = (_number, _things, _things, _only_colors, _several_colors)
    return rng.choice((*kinds, _two_things, _at_wall) if shapes else kinds)(rng)


def draw_tower_content(rng: random.Random) -> Content:
    """What a tower has, in one respect or of a height."""
    blocks = partial(_things, block='block')
    kinds = (blocks, blocks, _end, _end, _end, draw_above, _one_color, _stacked, _all_colors)
    content = rng.choice((draw_height, *kinds))(rng)
    if rng.random() < 0.75:
        return content
    height = draw_height(rng)
    link = rng.choice(('and', 'having', 'with'))
    return Content(
        f'{height.text} {link} {content.text}', lambda box: height.holds(box) and content.holds(box)
    )


def draw_height(rng: random.Random) -> Content:
    """A number of blocks."""
    quantity = draw_quantity(rng, 4)
    return Content(quantity.of('block'), lambda box: quantity.fits(len(box)))


def draw_above(rng: random.Random) -> Content:
    """A block next to another, above or below it."""
    upper, lower = rng.choice(NAMES), rng.choice(NAMES)

    def holds(box: Box) -> bool:
        return any((x.color, y.color) == (lower, upper) for x, y in pairwise(box))

    if rng.random() < 0.3:
        word = rng.choice(('below', 'under'))
        return Content(f'a {lower} block {word} a {upper} block', holds)
    return Content(f'a {upper} block {rng.choice(("above", "on", "over"))} a {lower} block', holds)


def _number(rng: random.Random) -> Content:
    quantity = draw_quantity(rng, 5)
    noun = rng.choice(('item', 'object'))
    return Content(quantity.of(noun), lambda box: quantity.fits(len(box)))


def _things(rng: random.Random, block: str | None = None) -> Content:
    quantity, things = draw_quantity(rng), draw_things(rng, block)
    return Content(quantity.of(things.text), lambda box: quantity.fits(things.count(box)))


def _two_things(rng: random.Random) -> Content:
    first, second = draw_things(rng), draw_things(rng)
    quantity = draw_quantity(rng, 2)
    return Content(
        f'a {first.text} and {quantity.of(second.text)}',
        lambda box: first.count(box) >= 1 and quantity.fits(second.count(box)),
    )


def _at_wall(rng: random.Random) -> Content:
    things, place = draw_things(rng), draw_place(rng)
    return Content(
        f'a {things.text} {place.text}',
        lambda box: any(things.fits(item) and place.fits(item) for item in box),
    )


def _only_colors(rng: random.Random) -> Content:
    """Items of one or two colours, whose number may be given."""
    colors = rng.sample(NAMES, rng.choice((1, 1, 2)))
    number = rng.randint(2, 5) if rng.random() < 0.5 else None
    names = ' and '.join(colors)
    items = 'items' if number is None else f'{number} items'
    text = rng.choice((f'{items} of only {names} color', f'only {names} items'))
    if text.startswith('only'):
        number = None
    return Content(
        text,
        lambda box: {item.color for item in box} == set(colors) and number in (None, len(box)),
    )


def _several_colors(rng: random.Random) -> Content:
    number, colors = rng.randint(2, 5), rng.randint(1, 3)
    text = {
        1: ('the same color', '1 color'),
        2: ('2 different colors', 'two different colors', 'only 2 colors'),
        3: ('all 3 different colors', '3 different colors', 'three colors'),
    }[colors]
    return Content(
        f'{number} items of {rng.choice(text)}',
        lambda box: len(box) == number and len({item.color for item in box}) == colors,
    )


def _end(rng: random.Random) -> Content:
    color, part = rng.choice(NAMES), rng.choice(('base', 'bottom', 'top', 'top'))
    index = -1 if part == 'top' else 0
    text = (f'a {color} block at the {part}', f'a {color} {part}')
    return Content(rng.choice((*text, text[0])), lambda box: box[index].color == color)


def _one_color(rng: random.Random) -> Content:
    color = rng.choice((None, *NAMES))
    if color is None:
        text = rng.choice(('blocks of the same color', 'blocks of a single color'))
        return Content(text, lambda box: len({x.color for x in box}) == 1)
    text = rng.choice((f'blocks of {color} color only', f'only {color} blocks'))
    return Content(text, lambda box: {x.color for x in box} == {color})


def _all_colors(rng: random.Random) -> Content:
    if rng.random() < 0.5:
        return Content('blocks of all three colors', lambda box: len({x.color for x in box}) == 3)
    colors = rng.sample(NAMES, 2)
    return Content(
        f'only {" and ".join(colors)} blocks', lambda box: {x.color for x in box} == set(colors)
    )


def _stacked(rng: random.Random) -> Content:
    color = rng.choice(NAMES)
    return Content(
        f'{rng.choice(("2", "two"))} {color} blocks stacked together',
        lambda box: any(x.color == y.color == color for x, y in pairwise(box)),
    )
