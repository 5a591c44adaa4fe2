"""Referring expressions of the embedded world."""

import re
from collections import Counter

import pytest

from xmodal.datasets.shapes.grammar import WORDINGS, vocabulary
from xmodal.datasets.shapes.record import Record
from xmodal.datasets.shapes.referring import generate_expressions, refcoco_split
from xmodal.datasets.shapes.scene import (
    COLOURS,
    DIRECTIONS,
    SHAPES,
    direction,
    has_held_out_composition,
    sample_scene,
)

COUNT = 120
NAME_OF = {wording: name for name, wordings in WORDINGS.items() for wording in wordings}
RELATIONS = sorted((text for name in DIRECTIONS for text in WORDINGS[name]), key=len)[::-1]
RELATION = re.compile(f'^(.*?) (?:that is )?({"|".join(RELATIONS)}) the (.*)$')


@pytest.fixture(scope='module', params=['train', 'val', 'test'])
def referred(request):
    """Each scene of a split with its expressions."""
    scenes = [sample_scene(0, request.param, index) for index in range(COUNT)]
    return [(scene, generate_expressions(request.param, scene)) for scene in scenes]


def fits(phrase, obj):
    """Whether every word of a noun phrase is true of an object."""
    attributes = (obj.shape, obj.colour, obj.size, obj.texture)
    return all(
        NAME_OF.get(word, word) in attributes for word in phrase.removeprefix('the ').split()
    )


def parse_referents(text, scene):
    """The objects that an expression may refer to, by its words alone."""
    relation = RELATION.match(text)
    if not relation:
        return [obj for obj in scene.objects if fits(text, obj)]
    target, wording, other = relation.groups()
    assert sum(fits(other, obj) for obj in scene.objects) == 1
    return [
        a
        for a in scene.objects
        if fits(target, a)
        and any(
            fits(other, b) and b is not a and direction(a, b) == NAME_OF[wording]
            for b in scene.objects
        )
    ]


def test_an_expression_fits_exactly_one_object(referred):
    for scene, expressions in referred:
        for text, expression, index in expressions:
            assert parse_referents(text, scene) == [scene.objects[index]], text
            assert expression.referents(scene) == [scene.objects[index]]


def test_a_relation_is_named_only_where_the_appearance_is_ambiguous(referred):
    num_relations = 0
    for scene, expressions in referred:
        for text, _, _ in expressions:
            if relation := RELATION.match(text):
                num_relations += 1
                assert sum(fits(relation.group(1), obj) for obj in scene.objects) > 1
    assert num_relations > COUNT / 4


def test_expressions_use_words_of_captions_and_no_absolute_location(referred):
    allowed = {'the', 'that', 'is', *COLOURS, *SHAPES}
    allowed |= {word for texts in WORDINGS.values() for text in texts for word in text.split()}
    assert allowed <= set(vocabulary())
    for _, expressions in referred:
        for text, _, _ in expressions:
            assert allowed.issuperset(text.split())
            # left, right, above and below are always relative to an object
            assert not re.search(r'\b(left|right)(?! of)|(above|over|below|under)$', text)


def test_most_objects_have_an_expression_and_texts_do_not_repeat_in_a_scene(
    referred,
):
    num_objects = num_identified = 0
    for scene, expressions in referred:
        counts = Counter(text for text, _, _ in expressions)
        assert set(counts.values()) <= {1}
        num_objects += len(scene.objects)
        num_identified += len({index for _, _, index in expressions})
    assert num_identified / num_objects > 0.9


def test_the_second_test_split_has_the_held_out_compositions():
    for index in range(20):
        scene = sample_scene(0, 'test', index)
        record = Record(scene, (), (), (), 96, '')
        expected = 'testB' if has_held_out_composition(scene) else 'testA'
        assert refcoco_split('test', record) == expected
        assert refcoco_split('train', record) == 'train'
