"""The captions of the embedded world: true of their scene, varied, and false of other scenes."""

import re
from dataclasses import replace

import pytest

from xmodal.datasets.shapes.captions import generate_captions
from xmodal.datasets.shapes.grammar import SPECIAL_TOKENS, WORDINGS, vocabulary
from xmodal.datasets.shapes.scene import COLOURS, SHAPES, Scene, SceneObject, sample_scene
from xmodal.datasets.shapes.statements import Description, Statement
from xmodal.datasets.shapes.statistics import measure, names_held_out, swap_mentions

COUNT = 80


@pytest.fixture(scope='module', params=['train', 'val', 'test'])
def captioned(request):
    """Each scene of a split with its captions."""
    scenes = [sample_scene(0, request.param, index) for index in range(COUNT)]
    return [(scene, generate_captions(0, request.param, scene)) for scene in scenes]


def disc(colour, x, y=0.5, size='small', texture='solid'):
    return SceneObject('disc', colour, size, texture, x, y, 0.08)


def scene_of(*objects):
    return Scene(0, objects, (230, 230, 230))


def test_each_scene_has_five_different_captions(captioned):
    assert all(len({text for text, _ in captions}) == 5 for _, captions in captioned)


def test_captions_are_true_of_their_scene(captioned):
    assert all(s.holds(scene) for scene, captions in captioned for _, s in captions)


def test_every_phrase_fits_exactly_one_object_or_one_group(captioned):
    for scene, captions in captioned:
        for _, statement in captions:
            for mention in statement.mentions:
                assert sum(mention.fits(obj) for obj in scene.objects) == mention.count


def test_captions_have_eight_to_twenty_words_of_the_vocabulary(captioned):
    words = set(vocabulary())
    for _, captions in captioned:
        for text, _ in captions:
            assert 8 <= len(text.split()) <= 20
            assert words.issuperset(text.split())


def test_captions_name_colour_and_shape_of_at_least_two_objects(captioned):
    shapes = {form for shape in SHAPES for form in (shape, f'{shape}s', f'{shape}es')}
    for _, captions in captioned:
        for text, _ in captions:
            words = text.split()
            named = [a in COLOURS and b in shapes for a, b in zip(words, words[1:], strict=False)]
            assert sum(named) >= 2


def test_captions_use_an_only_before_a_vowel(captioned):
    text = ' '.join(text for _, captions in captioned for text, _ in captions)
    assert not re.search(r'\ba [aeiou]|\ban [^aeiou]', text)


def test_verbs_agree_with_counts(captioned):
    text = ' | '.join(text for _, captions in captioned for text, _ in captions)
    assert ' there are two ' in text
    assert not re.search(r'there is (two|three)|there are (a|an|the) ', text)


def test_the_words_of_a_sentence_about_two_objects_agree_with_their_positions(captioned):
    """Interprets only the words, without the statement of the caption."""
    names = {
        word: name for name in ('left of', 'right of', 'above', 'below') for word in WORDINGS[name]
    }
    attributes = {
        word: name
        for name in ('small', 'large', 'solid', 'striped', 'dotted')
        for word in WORDINGS[name]
    }
    relation_words = '|'.join(sorted(names, key=len, reverse=True))
    noun = rf'(?:the|an?) ((?:\w+ ){{1,3}}(?:{"|".join(SHAPES)}))'
    filler = r'(?: is| lies| can be seen)?'
    forward = re.compile(rf'(?:there is |a picture of )?{noun}{filler} ({relation_words}) {noun}')
    inverted = re.compile(rf'({relation_words}) {noun} there is {noun}')
    num_parsed = 0
    for scene, captions in captioned:
        for text, _ in captions:
            if match := forward.fullmatch(text):
                first, name, second = match.groups()
            elif match := inverted.fullmatch(text):
                name, second, first = match.groups()
            else:
                continue
            num_parsed += 1
            a, b = (
                next(
                    obj
                    for obj in scene.objects
                    if {attributes.get(word, word) for word in phrase.split()}
                    <= {obj.shape, obj.colour, obj.size, obj.texture}
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
    assert num_parsed > 100


def test_training_captions_name_no_held_out_composition_and_test_captions_do(captioned, request):
    names_one = [names_held_out(s, scene) for scene, captions in captioned for _, s in captions]
    if 'test' in request.node.callspec.id:
        assert 0.1 < sum(names_one) / len(names_one) < 0.6
    else:
        assert not any(names_one)


def test_captions_are_false_with_their_two_objects_swapped(captioned):
    is_false = [
        not swap_mentions(s).holds(scene) for scene, captions in captioned for _, s in captions
    ]
    assert sum(is_false) / len(is_false) > 0.9


def test_a_caption_is_hardly_ever_true_of_another_scene():
    statistics = measure(seed=0, split='test', count=COUNT)
    assert 1 <= statistics['scenes that a caption is true of'] < 1.1
    assert statistics['scenes with the objects of a caption'] > 1.1


def test_captions_do_not_depend_on_earlier_captions():
    scene = sample_scene(0, 'val', 3)
    captions = generate_captions(0, 'val', scene)
    generate_captions(0, 'val', sample_scene(0, 'val', 4))
    assert generate_captions(0, 'val', scene) == captions


def test_a_statement_is_false_in_the_mirrored_scene():
    left = Statement(
        (Description('disc', 'red'), Description('disc', 'blue')), (('left of', (0, 1)),)
    )
    assert left.holds(scene_of(disc('red', 0.2), disc('blue', 0.8)))
    assert not left.holds(scene_of(disc('red', 0.8), disc('blue', 0.2)))


def test_two_phrases_never_refer_to_the_same_object():
    both = Statement((Description('disc', 'red'), Description('disc', 'red', 'small')), ())
    assert not both.holds(scene_of(disc('red', 0.2), disc('blue', 0.8)))
    assert both.holds(scene_of(disc('red', 0.2), disc('red', 0.8)))


def test_a_count_is_exact_and_its_relation_holds_for_each_object():
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
def test_a_description_fits_only_with_all_attributes(attribute, other):
    obj = disc('red', 0.5)
    description = Description('disc', 'red', 'small', 'solid')
    assert description.fits(obj)
    assert not replace(description, **{attribute: other}).fits(obj)


def test_the_vocabulary_begins_with_the_special_tokens_and_has_no_repeated_word():
    words = vocabulary()
    assert words[:5] == ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'] == list(SPECIAL_TOKENS)
    assert len(set(words)) == len(words)
    assert 60 <= len(words) <= 100
    assert all(re.fullmatch('[a-z]+', word) for word in words[5:])


def test_every_word_of_the_vocabulary_is_used():
    used = {
        word
        for index in range(1500)
        for text, _ in generate_captions(0, 'train', sample_scene(0, 'train', index))
        for word in text.split()
    }
    assert used == set(vocabulary()[5:])
