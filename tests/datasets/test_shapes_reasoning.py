"""The embedded world as NLVR2."""

import json
import re
from collections import Counter

import pytest

from xmodal.datasets.shapes.exporters import TASK_WORDS
from xmodal.datasets.shapes.grammar import WORDINGS, vocabulary
from xmodal.datasets.shapes.reasoning import generate_statements
from xmodal.datasets.shapes.scene import COLOURS, SHAPES, direction, sample_scene

NAMES = {
    words: name for name in ('left of', 'right of', 'above', 'below') for words in WORDINGS[name]
}


@pytest.fixture(scope='module', params=['train', 'test'])
def statements(request):
    """The scenes of a split, and the examples of each statement."""
    scenes = [sample_scene(0, request.param, index) for index in range(500)]
    return scenes, list(generate_statements(request.param, scenes))


def parse(text):
    """Which image a statement is about, and a test of what it says of it, by its words alone."""
    side = re.search(r'in (?:the )?(left|right|both) pictures?', text)
    phrase = text.replace(side[0], '').replace('there is', '').strip()
    nouns = '|'.join(SHAPES)
    relation = '|'.join(sorted(NAMES, key=len, reverse=True))
    if match := re.fullmatch(rf'an? ({"|".join(COLOURS)}) ({nouns})', phrase):
        colour, shape = match.groups()

        def is_shown(scene):
            return any(obj.colour == colour and obj.shape == shape for obj in scene.objects)
    else:
        first, words, second = re.fullmatch(
            rf'an? ({nouns}) ({relation}) an? ({nouns})', phrase
        ).groups()

        def is_shown(scene):
            return any(
                direction(a, b) == NAMES[words]
                for a in scene.objects
                for b in scene.objects
                if (a.shape, b.shape) == (first, second)
            )

    return side[1], is_shown


def test_labels_agree_with_the_words_and_the_images(statements):
    scenes, sets = statements
    for example in (example for examples in sets for example in examples):
        side, is_shown = parse(example.text)
        left, right = is_shown(scenes[example.left]), is_shown(scenes[example.right])
        expected = {'left': left, 'right': right, 'both': left and right}[side]
        assert example.holds == expected


def test_each_statement_has_four_different_pairs_two_true_and_two_false(statements):
    _, sets = statements
    assert len(sets) == 250
    for examples in sets:
        assert len({example.text for example in examples}) == 1
        assert len({(example.left, example.right) for example in examples}) == 4
        assert all(example.left != example.right for example in examples)
        assert sum(example.holds for example in examples) == 2


def test_the_words_alone_do_not_reveal_the_label(statements):
    labels = Counter(
        (example.text, example.holds) for examples in statements[1] for example in examples
    )
    assert all(labels[text, True] == labels[text, False] for text, _ in labels)


def test_the_images_alone_do_not_reveal_the_label(statements):
    """The share of true pairs of an image is near chance."""
    num_pairs, num_true = Counter(), Counter()
    for example in (example for examples in statements[1] for example in examples):
        for image in (example.left, example.right):
            num_pairs[image] += 1
            num_true[image] += example.holds
    frequent = [image for image in num_pairs if num_pairs[image] >= 8]
    shares = [num_true[image] / num_pairs[image] for image in frequent]
    assert 0.4 < sum(shares) / len(shares) < 0.6


def test_all_sides_and_pattern_types_are_used(statements):
    kinds = Counter((examples[0].side, len(examples[0].pattern)) for examples in statements[1])
    assert set(kinds) == {(side, size) for side in ('left', 'right', 'both') for size in (2, 3)}


def test_half_of_the_false_images_show_everything_that_is_named(statements):
    scenes, sets = statements
    shows_all = []
    for example in (e for examples in sets for e in examples if not e.holds):
        images = {'left': [example.left], 'right': [example.right]}.get(
            example.side, [example.left, example.right]
        )
        named = [word for word in example.pattern if word in COLOURS or word in SHAPES]
        for image in images:
            objects = scenes[image].objects
            shows_all.append(all(any(w in (o.shape, o.colour) for o in objects) for w in named))
    assert 0.4 < sum(shows_all) / len(shows_all) < 0.8


def test_all_words_are_in_the_vocabulary_with_the_right_article(statements):
    known = {*vocabulary(), *(word for words in TASK_WORDS for word in words)}
    text = ' '.join(examples[0].text for examples in statements[1])
    assert known.issuperset(text.split())
    assert not re.search(r'\ba [aeiou]|\ban [^aeiou]', text)


def test_the_file_has_the_fields_and_identifiers_of_nlvr2(tiny_world):
    for split in ('train', 'dev', 'test1'):
        lines = (tiny_world / f'nlvr2/{split}.json').read_text().splitlines()
        items = [json.loads(line) for line in lines]
        groups = Counter()
        for item in items:
            name, image_set, pair, sentence = item['identifier'].split('-')
            assert name == split and pair in '0123'
            groups[image_set, sentence, item['sentence']] += 1
            assert item['label'] in ('True', 'False')
            for url in (item['left_url'], item['right_url']):
                assert (tiny_world / url).exists()
        assert set(groups.values()) == {4}
        assert len({item['identifier'] for item in items}) == len(items)
