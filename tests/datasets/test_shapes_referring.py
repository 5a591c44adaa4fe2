"""Referring expressions of the embedded world."""

import re
from collections import Counter

import pytest

from xmodal.datasets.shapes.grammar import WORDINGS, vocabulary
from xmodal.datasets.shapes.record import Record
from xmodal.datasets.shapes.referring import refcoco_split, write_expressions
from xmodal.datasets.shapes.scene import (
    COLOURS,
    DIRECTIONS,
    SHAPES,
    direction,
    holds_held_out,
    sample_scene,
)

COUNT = 120
MEANING = {said: meant for meant, wording in WORDINGS.items() for said in wording}
RELATIONS = sorted((said for name in DIRECTIONS for said in WORDINGS[name]), key=len)[::-1]
RELATION = re.compile(f'^(.*?) (?:that is )?({"|".join(RELATIONS)}) the (.*)$')


@pytest.fixture(scope='module', params=['train', 'val', 'test'])
def described(request):
    """(scene, expressions) of each scene of a split."""
    scenes = [sample_scene(0, request.param, index) for index in range(COUNT)]
    return [(scene, write_expressions(request.param, scene)) for scene in scenes]


def fits(phrase, thing):
    """Whether every word of a noun phrase is true of a thing."""
    looks = (thing.shape, thing.colour, thing.size, thing.texture)
    return all(MEANING.get(word, word) in looks for word in phrase.removeprefix('the ').split())


def meant(text, scene):
    """The things an expression may mean, from its words alone."""
    relation = RELATION.match(text)
    if not relation:
        return [thing for thing in scene.things if fits(text, thing)]
    one, said, other = relation.groups()
    assert sum(fits(other, thing) for thing in scene.things) == 1
    return [
        a
        for a in scene.things
        if fits(one, a)
        and any(
            fits(other, b) and b is not a and direction(a, b) == MEANING[said] for b in scene.things
        )
    ]


def test_an_expression_fits_one_thing_alone(described):
    for scene, expressions in described:
        for text, expression, place in expressions:
            assert meant(text, scene) == [scene.things[place]], text
            assert expression.referents(scene) == [scene.things[place]]


def test_a_relation_is_named_only_where_the_looks_alone_fit_several(described):
    related = 0
    for scene, expressions in described:
        for text, _, _ in expressions:
            if relation := RELATION.match(text):
                related += 1
                assert sum(fits(relation.group(1), thing) for thing in scene.things) > 1
    assert related > COUNT / 4


def test_words_are_those_of_the_captions_and_none_says_an_absolute_place(described):
    allowed = {'the', 'that', 'is', *COLOURS, *SHAPES}
    allowed |= {word for wording in WORDINGS.values() for said in wording for word in said.split()}
    assert allowed <= set(vocabulary())
    for _, expressions in described:
        for text, _, _ in expressions:
            assert allowed.issuperset(text.split())
            # left, right, above and below are always of something
            assert not re.search(r'\b(left|right)(?! of)|(above|over|below|under)$', text)


def test_most_things_have_an_expression_and_no_text_is_twice_in_a_scene(described):
    things = told = 0
    for scene, expressions in described:
        counts = Counter(text for text, _, _ in expressions)
        assert set(counts.values()) <= {1}
        things += len(scene.things)
        told += len({place for _, _, place in expressions})
    assert told / things > 0.9


def test_the_second_test_split_has_the_compositions_kept_from_training():
    for index in range(20):
        scene = sample_scene(0, 'test', index)
        record = Record(scene, (), (), (), 96, '')
        expected = 'testB' if holds_held_out(scene) else 'testA'
        assert refcoco_split('test', record) == expected
        assert refcoco_split('train', record) == 'train'
