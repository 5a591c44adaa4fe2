"""The captions of the embedded world: true, varied, and true of little else."""

import re
from dataclasses import replace

import pytest

from xmodal.datasets.shapes.grammar import (
    SPECIAL_TOKENS,
    WORDINGS,
    Description,
    Statement,
    vocabulary,
    write_captions,
)
from xmodal.datasets.shapes.scene import COLOURS, SHAPES, Scene, Thing, sample_scene
from xmodal.datasets.shapes.statistics import exchanged, measure, names_held_out

COUNT = 80


@pytest.fixture(scope='module', params=['train', 'val', 'test'])
def described(request):
    """(scene, captions) of each scene of a split."""
    scenes = [sample_scene(0, request.param, index) for index in range(COUNT)]
    return [(scene, write_captions(0, request.param, scene)) for scene in scenes]


def disc(colour, x, y=0.5, size='small', texture='solid'):
    return Thing('disc', colour, size, texture, x, y, 0.08)


def scene_of(*things):
    return Scene(0, things, (230, 230, 230))


def test_each_scene_has_five_distinct_captions(described):
    assert all(len({text for text, _ in captions}) == 5 for _, captions in described)


def test_captions_are_true_of_their_scene(described):
    assert all(s.holds(scene) for scene, captions in described for _, s in captions)


def test_every_phrase_fits_one_thing_or_one_group_alone(described):
    for scene, captions in described:
        for _, statement in captions:
            for mention in statement.mentions:
                assert sum(mention.fits(thing) for thing in scene.things) == mention.count


def test_captions_have_eight_to_twenty_words_of_the_vocabulary(described):
    words = set(vocabulary())
    for _, captions in described:
        for text, _ in captions:
            assert 8 <= len(text.split()) <= 20
            assert words.issuperset(text.split())


def test_captions_name_colour_and_shape_of_two_things_at_least(described):
    shapes = {form for shape in SHAPES for form in (shape, f'{shape}s', f'{shape}es')}
    for _, captions in described:
        for text, _ in captions:
            words = text.split()
            named = [a in COLOURS and b in shapes for a, b in zip(words, words[1:], strict=False)]
            assert sum(named) >= 2


def test_captions_use_an_before_a_vowel_only(described):
    text = ' '.join(text for _, captions in described for text, _ in captions)
    assert not re.search(r'\ba [aeiou]|\ban [^aeiou]', text)


def test_verbs_agree_with_what_is_counted(described):
    text = ' | '.join(text for _, captions in described for text, _ in captions)
    assert ' there are two ' in text
    assert not re.search(r'there is (two|three)|there are (a|an|the) ', text)


def test_words_of_a_sentence_about_two_things_agree_with_their_places(described):
    """Reads the words alone, without the statement that came with them."""
    names = {
        word: name for name in ('left of', 'right of', 'above', 'below') for word in WORDINGS[name]
    }
    looks = {
        word: name
        for name in ('small', 'large', 'solid', 'striped', 'dotted')
        for word in WORDINGS[name]
    }
    relation_words = '|'.join(sorted(names, key=len, reverse=True))
    noun = rf'(?:the|an?) ((?:\w+ ){{1,3}}(?:{"|".join(SHAPES)}))'
    filler = r'(?: is| lies| can be seen)?'
    forward = re.compile(rf'(?:there is |a picture of )?{noun}{filler} ({relation_words}) {noun}')
    inverted = re.compile(rf'({relation_words}) {noun} there is {noun}')
    read = 0
    for scene, captions in described:
        for text, _ in captions:
            if found := forward.fullmatch(text):
                first, name, second = found.groups()
            elif found := inverted.fullmatch(text):
                name, second, first = found.groups()
            else:
                continue
            read += 1
            a, b = (
                next(
                    thing
                    for thing in scene.things
                    if {looks.get(word, word) for word in phrase.split()}
                    <= {thing.shape, thing.colour, thing.size, thing.texture}
                )
                for phrase in (first, second)
            )
            axis, sign = {
                'left of': ('x', -1),
                'right of': ('x', 1),
                'above': ('y', -1),
                'below': ('y', 1),
            }[names[name]]
            assert sign * (getattr(a, axis) - getattr(b, axis)) > 0
    assert read > 100


def test_training_captions_name_no_held_out_composition_and_test_captions_do(described, request):
    named = [names_held_out(s, scene) for scene, captions in described for _, s in captions]
    if 'test' in request.node.callspec.id:
        assert 0.1 < sum(named) / len(named) < 0.6
    else:
        assert not any(named)


def test_captions_are_false_when_their_two_things_are_exchanged(described):
    false = [not exchanged(s).holds(scene) for scene, captions in described for _, s in captions]
    assert sum(false) / len(false) > 0.9


def test_a_caption_is_true_of_hardly_any_other_scene():
    found = measure(seed=0, split='test', count=COUNT)
    assert 1 <= found['scenes a caption is true of'] < 1.1
    assert found['scenes that hold the things a caption names'] > 1.1


def test_captions_do_not_depend_on_what_was_written_before():
    scene = sample_scene(0, 'val', 3)
    first = write_captions(0, 'val', scene)
    write_captions(0, 'val', sample_scene(0, 'val', 4))
    assert write_captions(0, 'val', scene) == first


def test_a_statement_is_false_in_the_mirrored_scene():
    left = Statement(
        (Description('disc', 'red'), Description('disc', 'blue')), (('left of', (0, 1)),)
    )
    assert left.holds(scene_of(disc('red', 0.2), disc('blue', 0.8)))
    assert not left.holds(scene_of(disc('red', 0.8), disc('blue', 0.2)))


def test_two_phrases_never_stand_for_the_same_thing():
    both = Statement((Description('disc', 'red'), Description('disc', 'red', 'small')), ())
    assert not both.holds(scene_of(disc('red', 0.2), disc('blue', 0.8)))
    assert both.holds(scene_of(disc('red', 0.2), disc('red', 0.8)))


def test_a_count_is_exact_and_its_relation_holds_of_each():
    two = Description('disc', 'red', count=2)
    statement = Statement((two, Description('disc', 'blue')), (('left of', (0, 1)),))
    blue = disc('blue', 0.6)
    assert statement.holds(scene_of(disc('red', 0.1), disc('red', 0.3), blue))
    assert not statement.holds(scene_of(disc('red', 0.1), disc('red', 0.9), blue))
    assert not statement.holds(scene_of(disc('red', 0.1), blue))
    assert not statement.holds(scene_of(*(disc('red', x) for x in (0.1, 0.2, 0.3)), blue))


@pytest.mark.parametrize(
    ('attribute', 'other'),
    [('size', 'large'), ('texture', 'striped'), ('colour', 'pink'), ('shape', 'bar')],
)
def test_every_attribute_counts(attribute, other):
    thing = disc('red', 0.5)
    description = Description('disc', 'red', 'small', 'solid')
    assert description.fits(thing)
    assert not replace(description, **{attribute: other}).fits(thing)


def test_the_vocabulary_begins_with_the_special_tokens_and_has_no_word_twice():
    words = vocabulary()
    assert words[:5] == ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'] == list(SPECIAL_TOKENS)
    assert len(set(words)) == len(words)
    assert 60 <= len(words) <= 100
    assert all(re.fullmatch('[a-z]+', word) for word in words[5:])


def test_every_word_of_the_vocabulary_is_used():
    written = {
        word
        for index in range(1500)
        for text, _ in write_captions(0, 'train', sample_scene(0, 'train', index))
        for word in text.split()
    }
    assert written == set(vocabulary()[5:])
