"""The embedded world as NLVR2."""

import json
import re
from collections import Counter

import pytest

from xmodal.datasets.shapes.exporters import TASK_WORDS
from xmodal.datasets.shapes.grammar import WORDINGS, vocabulary
from xmodal.datasets.shapes.reasoning import write_statements
from xmodal.datasets.shapes.scene import COLOURS, SHAPES, direction, sample_scene

NAMES = {
    words: name for name in ('left of', 'right of', 'above', 'below') for words in WORDINGS[name]
}


@pytest.fixture(scope='module', params=['train', 'test'])
def written(request):
    """The scenes of a split and their statements."""
    scenes = [sample_scene(0, request.param, index) for index in range(500)]
    return scenes, list(write_statements(request.param, scenes))


def read(text):
    """The statement's words alone: a test of a scene, and how the pictures are tested."""
    where = re.search(r'in (?:the )?(left|right|both) pictures?', text)
    said = text.replace(where[0], '').replace('there is', '').strip()
    nouns = '|'.join(SHAPES)
    relation = '|'.join(sorted(NAMES, key=len, reverse=True))
    if found := re.fullmatch(rf'an? ({"|".join(COLOURS)}) ({nouns})', said):
        colour, shape = found.groups()

        def shown(scene):
            return any(thing.colour == colour and thing.shape == shape for thing in scene.things)
    else:
        first, words, second = re.fullmatch(
            rf'an? ({nouns}) ({relation}) an? ({nouns})', said
        ).groups()

        def shown(scene):
            return any(
                direction(a, b) == NAMES[words]
                for a in scene.things
                for b in scene.things
                if (a.shape, b.shape) == (first, second)
            )

    return where[1], shown


def test_labels_are_what_the_words_say_of_the_pictures(written):
    scenes, sets = written
    for example in (example for examples in sets for example in examples):
        where, shown = read(example.text)
        left, right = shown(scenes[example.left]), shown(scenes[example.right])
        expected = {'left': left, 'right': right, 'both': left and right}[where]
        assert example.holds == expected


def test_each_statement_has_four_different_pairs_two_true_and_two_false(written):
    _, sets = written
    assert len(sets) == 250
    for examples in sets:
        assert len({example.text for example in examples}) == 1
        assert len({(example.left, example.right) for example in examples}) == 4
        assert all(example.left != example.right for example in examples)
        assert sum(example.holds for example in examples) == 2


def test_the_words_alone_do_not_give_the_label_away(written):
    labels = Counter((example.text, example.holds) for own in written[1] for example in own)
    assert all(labels[text, True] == labels[text, False] for text, _ in labels)


def test_the_pictures_alone_do_not_give_the_label_away(written):
    """How often a picture stands in a true pair, against chance: no picture is a giveaway."""
    seen, true = Counter(), Counter()
    for example in (example for own in written[1] for example in own):
        for place in (example.left, example.right):
            seen[place] += 1
            true[place] += example.holds
    often = [place for place in seen if seen[place] >= 8]
    shares = [true[place] / seen[place] for place in often]
    assert 0.4 < sum(shares) / len(shares) < 0.6


def test_places_and_kinds_of_statements_are_all_used(written):
    kinds = Counter((own[0].where, len(own[0].sight)) for own in written[1])
    assert set(kinds) == {(where, size) for where in ('left', 'right', 'both') for size in (2, 3)}


def test_half_of_the_false_pictures_hold_all_that_is_named(written):
    scenes, sets = written
    held = []
    for example in (e for own in sets for e in own if not e.holds):
        places = {'left': [example.left], 'right': [example.right]}.get(
            example.where, [example.left, example.right]
        )
        named = [word for word in example.sight if word in COLOURS or word in SHAPES]
        for place in places:
            things = scenes[place].things
            held.append(all(any(w in (t.shape, t.colour) for t in things) for w in named))
    assert 0.4 < sum(held) / len(held) < 0.8


def test_words_are_of_the_vocabulary_with_the_right_article(written):
    known = {*vocabulary(), *(word for words in TASK_WORDS for word in words)}
    text = ' '.join(own[0].text for own in written[1])
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
