"""A grammar of statements about NLVR's scenes, each of which knows where it is true.

They are phrased as people phrase theirs: how many things, boxes or towers there are, of which
colours, shapes and heights, and what touches a wall.
"""

import random
from collections.abc import Callable
from typing import NamedTuple

from xmodal.datasets.nlvr_contents import (
    NAMES,
    Content,
    Quantity,
    draw_above,
    draw_box_content,
    draw_height,
    draw_place,
    draw_quantity,
    draw_things,
    draw_tower_content,
)
from xmodal.datasets.nlvr_scene import Box, Scene


class Statement(NamedTuple):
    """A sentence, and whether it is true of a scene."""

    text: str
    holds: Callable[[Scene], bool]


def draw_statement(rng: random.Random, towers: bool) -> Statement:
    """A random statement.

    Args:
        rng: source of randomness.
        towers: whether it is about towers, or about scattered items.
    """
    if towers:
        others = (_of_blocks, _of_base_or_top, _of_one_color, _of_boxes)
        kinds = (_of_towers, _of_towers, _of_towers, *others)
    else:
        kinds = (_of_items, _of_scattered_boxes)
    text, holds = rng.choice(kinds)(rng)
    return Statement(f'{text[0].upper()}{text[1:]}.', holds)


def draw_box_statement(rng: random.Random, towers: bool) -> Content:
    """A random statement about a single box: "box with two black items".

    Args:
        rng: source of randomness.
        towers: whether it is of a tower, or of scattered items.
    """
    if towers and rng.random() < 0.85:
        noun, content = 'tower', draw_tower_content(rng)
    else:
        noun, content = 'box', draw_box_content(rng, shapes=not towers)
    return Content(f'{noun} with {content.text}', content.holds)


def _of_items(rng: random.Random) -> Statement:
    """Items of all boxes, anywhere or at a wall."""
    things, place, quantity = draw_things(rng), draw_place(rng), draw_quantity(rng)
    text = _there(quantity, things.text)
    if rng.random() < 0.3:
        return Statement(text, lambda scene: quantity.fits(things.count(scene.items)))
    return Statement(
        f'{text} {place.text}',
        lambda scene: quantity.fits(
            sum(things.fits(item) and place.fits(item) for item in scene.items)
        ),
    )


def _of_scattered_boxes(rng: random.Random) -> Statement:
    noun = rng.choice(('box', 'box', 'grey box'))
    return _of_contents(rng, noun, draw_box_content(rng, shapes=True))


def _of_boxes(rng: random.Random) -> Statement:
    return _of_contents(rng, 'box', draw_box_content(rng, shapes=False))


def _of_towers(rng: random.Random) -> Statement:
    return _of_contents(rng, 'tower', draw_tower_content(rng))


def _of_contents(rng: random.Random, noun: str, content: Content) -> Statement:
    """Boxes, or towers, with some content."""
    way = rng.random()
    if way < 0.1:
        text = f'{rng.choice(("each", "every"))} {noun} has {content.text}'
        return Statement(text, lambda scene: all(map(content.holds, scene.boxes)))
    if way < 0.2:
        boxes = Quantity('the', False, bool).of(noun)
        text = f'one of {boxes} {rng.choice(("has", "contains"))} {content.text}'
        return Statement(text, lambda scene: any(map(content.holds, scene.boxes)))
    quantity = draw_quantity(rng, rng.choice((1, 2, 3)))
    has = rng.choice(('with', 'with', 'that has' if quantity.is_one else 'that have'))
    return _of_count(quantity, f'{noun}', f'{has} {content.text}', content.holds)


def _of_blocks(rng: random.Random) -> Statement:
    """Blocks of all towers, or a block on another."""
    if rng.random() < 0.5:
        above, is_true = draw_above(rng), rng.random() < 0.8
        text = f'there is {"a" if is_true else "no"}{above.text[1:]}'
        return Statement(text, lambda scene: any(map(above.holds, scene.boxes)) == is_true)
    things = draw_things(rng, rng.choice(('block', 'block', 'item', 'object')))
    quantity = draw_quantity(rng)
    text = _there(quantity, things.text)
    return Statement(text, lambda scene: quantity.fits(things.count(scene.items)))


def _of_base_or_top(rng: random.Random) -> Statement:
    """Blocks as the base or the top of towers."""
    color, (part, index) = rng.choice(NAMES), rng.choice((('base', 0), ('top', -1)))
    height = _maybe_height(rng)
    return _of_count(
        draw_quantity(rng),
        f'{color} block',
        f'as the {part} of a tower {height.text}',
        lambda box: height.holds(box) and box[index].color == color,
    )


def _of_one_color(rng: random.Random) -> Statement:
    """Towers of one colour, or the colours of all bases or tops."""
    if rng.random() < 0.7:
        color, height = rng.choice(NAMES), _maybe_height(rng)
        return _of_count(
            draw_quantity(rng, 2),
            f'{color} tower',
            height.text,
            lambda box: height.holds(box) and {item.color for item in box} == {color},
        )
    (part, index), same = rng.choice((('bases', 0), ('tops', -1))), rng.random() < 0.5
    return Statement(
        f'the {part} of the three towers are {"" if same else "not "}the same color',
        lambda scene: (len({box[index].color for box in scene.boxes}) == 1) == same,
    )


def _maybe_height(rng: random.Random) -> Content:
    height = draw_height(rng)
    if rng.random() < 0.5:
        return Content('', lambda box: True)
    return Content(f'with {height.text}', height.holds)


def _of_count(quantity: Quantity, noun: str, rest: str, holds: Callable[[Box], bool]) -> Statement:
    """So many boxes of a kind."""
    text = f'{_there(quantity, noun)} {rest}'.strip()
    return Statement(text, lambda scene: quantity.fits(sum(map(holds, scene.boxes))))


def _there(quantity: Quantity, noun: str) -> str:
    return f'there {"is" if quantity.is_one else "are"} {quantity.of(noun)}'
