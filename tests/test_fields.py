"""Fields of a record: each method takes its type alone, and errors say where the field is."""

import math

import pytest

from xmodal.fields import Fields, as_objects, shorten

RECORD = {
    'text': 'a dog',
    'empty': '',
    'number': 7,
    'share': 0.5,
    'flag': True,
    'null': None,
    'nan': math.nan,
    'huge': 10**30,
    'texts': ['a', 'b'],
    'mixed': ['a', 3],
    'object': {'a': 1, 'b': 0.25},
    'objects': [{'id': 1}, {'id': 'x'}],
}
# What each method takes of the record.
TAKES = {
    'text': {'text', 'empty'},
    'name': {'text'},
    'integer': {'number'},
    'id': {'text', 'number'},
    'number': {'number', 'share', 'huge'},
    'flag': {'flag'},
    'items': {'texts', 'mixed', 'objects'},
    'texts': {'texts'},
    'object': {'object'},
}


@pytest.mark.parametrize('method', TAKES)
def test_a_method_takes_its_type_and_no_other(method):
    fields = Fields(RECORD)
    for key, value in RECORD.items():
        if key in TAKES[method]:
            found = getattr(fields, method)(key)
            assert found == value or isinstance(found, Fields)
        else:
            with pytest.raises(ValueError, match=f'^{key} is .*, expected (a|true)'):
                getattr(fields, method)(key)
    with pytest.raises(ValueError, match="^key 'nowhere' is missing, expected "):
        getattr(fields, method)('nowhere')


def test_a_default_is_for_what_is_missing_or_null_alone():
    fields = Fields(RECORD)
    assert fields.text('nowhere', 'x') == fields.text('null', 'x') == 'x'
    assert fields.integer('null', None) is None
    with pytest.raises(ValueError, match='number is 7, expected a text'):
        fields.text('number', 'x')


def test_errors_say_where_a_field_is():
    fields = Fields(RECORD)
    assert fields.object('object').scores().keys() == {'a', 'b'}
    first, second = fields.objects('objects')
    assert first.integer('id') == 1
    with pytest.raises(ValueError, match=r"^objects\[1\]\.id is 'x', expected a whole number"):
        second.integer('id')
    with pytest.raises(ValueError, match=r"^key 'no' is missing in objects\[1\], expected a text"):
        second.text('no')
    with pytest.raises(ValueError, match=r'^\[1\] is 5, expected an object'):
        list(as_objects([{}, 5]))
    with pytest.raises(ValueError, match='^number is 7, expected a number from 0 to 1'):
        fields.number('number', 0, 1)


@pytest.mark.parametrize('key', sorted(RECORD.keys() - {'texts', 'mixed', 'objects'}))
def test_what_is_no_list_is_not_taken_for_an_empty_one(key):
    with pytest.raises(ValueError, match='^it is .*, expected a list'):
        list(as_objects(RECORD[key]))


def test_a_template_takes_fields_that_are_texts_or_whole_numbers():
    fields = Fields(RECORD)
    assert fields.format('{split}/{number:03d}-{text}.png', split='dev') == 'dev/007-a dog.png'
    with pytest.raises(ValueError, match='^share is 0.5, expected a whole number or a text'):
        fields.format('{share}.png')


def test_long_and_deep_values_are_cut():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for value in ('x' * 10**6, list(range(10**6)), dict.fromkeys(range(10**6)), deep):
        assert len(shorten(value)) <= 60
    while deep:  # one after another: the interpreter frees them recursively
        (deep,) = deep
