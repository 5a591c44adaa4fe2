"""The grammar of statements about NLVR: what a sentence says, read from its words, is its truth."""

import random
import re

import pytest

from xmodal.datasets.nlvr_scene import Item, Scene
from xmodal.datasets.nlvr_statements import draw_statement

COLORS, SHAPES = ('yellow', 'black', 'blue'), ('square', 'triangle', 'circle')
NUMBERS = {'a': 1, 'one': 1, 'two': 2, 'three': 3, 'four': 4, 'five': 5}
QUANTITY = r'(?:exactly |only |at least |no|a)?(?:\d|one|two|three|four|five)?'
COLOR = '(yellow|black|blue)'


def quantity(text):
    """Whether a number is meant by "at least two", for instance."""
    *kind, word = text.split()
    number = int(word) if word.isdigit() else NUMBERS.get(word, 0)
    if word == 'a' or kind == ['at', 'least']:
        return lambda count: count >= number
    return lambda count: count == number


def towers(rng):
    heights = [rng.randint(1, 4) for _ in range(3)]
    return [
        tuple(Item(rng.choice(COLORS), 'square', 40, 80 - 21 * i, 20) for i in range(height))
        for height in heights
    ]


def scattered(rng):
    places = [0, 3, 40, 80]
    return [
        tuple(
            Item(rng.choice(COLORS), rng.choice(SHAPES), rng.choice(places), rng.choice(places), 20)
            for _ in range(rng.randint(1, 5))
        )
        for _ in range(3)
    ]


def colors(box):
    return [item.color for item in box]


# A pattern of a sentence, and what its groups say of the boxes.
ABOUT_TOWERS = {
    rf'There (?:is|are) ({QUANTITY}) towers? (?:with|that has|that have) a {COLOR} '
    r'(?:block at the )?(base|bottom|top)\.': lambda boxes, n, color, part: quantity(n)(
        sum(colors(box)[-1 if part == 'top' else 0] == color for box in boxes)
    ),
    rf'There (?:is|are) ({QUANTITY}) {COLOR} (?:block|item|object)s?\.': lambda boxes, n, color: (
        quantity(n)(sum(colors(box).count(color) for box in boxes))
    ),
    rf'There is (a|no) {COLOR} block (?:above|on|over) a {COLOR} block\.': lambda boxes, n, x, y: (
        quantity(n)(sum(f'{y} {x}' in ' '.join(colors(box)) for box in boxes))
    ),
    rf'There (?:is|are) ({QUANTITY}) {COLOR} blocks? as the (base|top) of a tower with '
    rf'({QUANTITY}) blocks?\.': lambda boxes, n, color, part, m: quantity(n)(
        sum(
            quantity(m)(len(box)) and colors(box)[-1 if part == 'top' else 0] == color
            for box in boxes
        )
    ),
    rf'(Each|Every) tower has ({QUANTITY}) {COLOR} blocks?\.': lambda boxes, _, n, color: all(
        quantity(n)(colors(box).count(color)) for box in boxes
    ),
    rf'There (?:is|are) ({QUANTITY}) {COLOR} towers?\.': lambda boxes, n, color: quantity(n)(
        sum(set(colors(box)) == {color} for box in boxes)
    ),
}
ABOUT_ITEMS = {
    rf'There (?:is|are) ({QUANTITY}) {COLOR} (square|triangle|circle)s? (?:closely )?touching '
    r'(?:the|an) (?:wall|edge)\.': lambda boxes, n, color, shape: quantity(n)(
        sum(
            x.color == color and x.shape == shape and bool({x.left, x.top} & {0, 80})
            for box in boxes
            for x in box
        )
    ),
    rf'There (?:is|are) ({QUANTITY}) {COLOR} (?:item|object)s? not (?:closely )?touching the '
    r'(?:base|bottom|bottom edge|bottom of a box)\.': lambda boxes, n, color: quantity(n)(
        sum(x.color == color and x.top != 80 for box in boxes for x in box)
    ),
    rf'There (?:is|are) ({QUANTITY}) (?:grey )?box(?:es)? (?:with|that has|that have) '
    rf'({QUANTITY}) {COLOR} (?:item|object)s?\.': lambda boxes, n, m, color: quantity(n)(
        sum(quantity(m)(colors(box).count(color)) for box in boxes)
    ),
    rf'One of the (?:grey )?boxes (?:has|contains) ({QUANTITY}) (square|triangle|circle)s?\.': (
        lambda boxes, m, shape: any(quantity(m)(sum(x.shape == shape for x in b)) for b in boxes)
    ),
}


@pytest.mark.parametrize(
    ('are_towers', 'draw_boxes', 'patterns'),
    [(True, towers, ABOUT_TOWERS), (False, scattered, ABOUT_ITEMS)],
)
def test_a_statement_holds_where_its_words_say_so(are_towers, draw_boxes, patterns):
    rng = random.Random(0)
    found = dict.fromkeys(patterns, 0)
    answers = []
    for _ in range(6000):
        statement = draw_statement(rng, are_towers)
        for pattern, says in patterns.items():
            if match := re.fullmatch(pattern, statement.text):
                found[pattern] += 1
                for _ in range(4):
                    boxes = tuple(draw_boxes(rng))
                    expected = bool(says(boxes, *match.groups()))
                    assert statement.holds(Scene('1-0', boxes)) == expected, statement.text
                    answers.append(expected)
    assert min(found.values()) >= 10, found
    assert 0.1 < sum(answers) / len(answers) < 0.9
