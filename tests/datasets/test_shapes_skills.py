"""Minimal pairs of the embedded world, read from their words and compared with the scene."""

import json
import math
import re
from collections import Counter

import pytest

from xmodal.datasets.shapes.grammar import vocabulary
from xmodal.datasets.shapes.scene import COLOURS, SHAPES, has_held_out_composition
from xmodal.datasets.shapes.skills import SKILLS, generate_pairs

PHRASE = re.compile(
    rf'(?:(two|three) )?((?:(?:small|little|large|big|plain|striped|dotted|spotted) )*)'
    rf'({"|".join(COLOURS)}) ({"|".join(sorted(SHAPES, key=len, reverse=True))})'
)
DIRECTION = re.compile(r'left|right|above|over|below|under')
MEANING = {
    'small': ('size', 'small'), 'little': ('size', 'small'),
    'large': ('size', 'large'), 'big': ('size', 'large'),
    'plain': ('texture', 'solid'), 'striped': ('texture', 'striped'),
    'dotted': ('texture', 'dotted'), 'spotted': ('texture', 'dotted'),
}  # fmt: skip


@pytest.fixture(scope='module')
def scenes():
    return [generate_pairs(0, index) for index in range(300)]


@pytest.fixture(scope='module')
def others():
    return [generate_pairs(0, index)[1] for index in range(300, 1000)]


def is_true(text, scene):
    """Whether a sentence is true of a scene, from its words."""
    found, word = list(PHRASE.finditer(text)), DIRECTION.search(text)
    phrases = []
    for match in found:
        count, adjectives, colour, shape = match.groups()
        said = {'colour': colour, 'shape': shape} | dict(MEANING[x] for x in adjectives.split())
        fitting = [o for o in scene.objects if all(getattr(o, k) == v for k, v in said.items())]
        if count:
            if len(fitting) != {'two': 2, 'three': 3}[count]:
                return False
        else:
            phrases.append((match.start(), fitting))
    (start, subjects), (_, others) = phrases
    if word.start() < start:  # "left of the disc there is a bar": the bar is left
        subjects, others = others, subjects
    for a in subjects:
        for b in others:
            dx, dy = a.x - b.x, a.y - b.y
            holds = {
                'left': dx < 0 and -dx >= 1.5 * abs(dy),
                'right': dx > 0 and dx >= 1.5 * abs(dy),
                'above': dy < 0 and -dy >= 1.5 * abs(dx),
                'below': dy > 0 and dy >= 1.5 * abs(dx),
            }
            if a is not b and holds[{'over': 'above', 'under': 'below'}.get(word[0], word[0])]:
                return True
    return False


def test_the_caption_is_true_of_the_scene_and_the_negative_is_false(scenes):
    for scene, pairs in scenes:
        for skill, pair in pairs.items():
            assert is_true(pair.text, scene), (skill, pair.text)
            assert not is_true(pair.false_text, scene), (skill, pair.false_text)


def test_one_thing_differs_and_it_is_what_the_skill_is_about(scenes):
    sides = {'left', 'right', 'above', 'over', 'below', 'under'}
    for _, pairs in scenes:
        changed = {}
        for skill, pair in pairs.items():
            words, others = pair.text.split(), pair.false_text.split()
            assert len(words) == len(others)
            changed[skill] = [
                (a, b)
                for a, b in zip(words, others, strict=True)
                if a != b and {a, b} != {'a', 'an'}
            ]
        if 'binding' in changed:
            (one, other), (first, second) = changed['binding']
            assert (first, second) == (other, one) and {one, other} <= set(COLOURS)
        for skill, values in (
            ('relation', sides),
            ('count', {'two', 'three'}),
            ('object', set(SHAPES)),
            ('attribute', set(COLOURS) | set(MEANING)),
        ):
            for a, b in changed.get(skill, ()):
                assert {a, b} <= values, (skill, a, b)
            assert len(changed.get(skill, (1,))) == 1


def test_nearly_every_scene_has_a_pair_of_each_skill(scenes):
    counts = Counter(skill for _, pairs in scenes for skill in pairs)
    assert set(counts) == set(SKILLS) and min(counts.values()) > 0.75 * len(scenes)


def test_nothing_is_held_out_and_all_words_are_known(scenes):
    assert not any(has_held_out_composition(scene) for scene, _ in scenes)
    texts = [t for _, pairs in scenes for p in pairs.values() for t in (p.text, p.false_text)]
    assert set(vocabulary()).issuperset(' '.join(texts).split())


def test_each_word_is_as_often_the_true_as_the_false_one(others):
    for skill in SKILLS:
        true, false = Counter(), Counter()
        for pairs in others:
            if skill in pairs:
                words = pairs[skill].text.split(), pairs[skill].false_text.split()
                differing = [(a, b) for a, b in zip(*words, strict=True) if a != b]
                true.update(a for a, _ in differing)
                false.update(b for _, b in differing)
        for word in true | false:
            total = true[word] + false[word]
            if total > 150:
                assert abs(true[word] - false[word]) / total < 0.25, (skill, word)


def test_the_words_alone_do_not_reveal_which_caption_is_true(scenes, others):
    counts = {True: Counter(), False: Counter()}

    def features(text):
        words = text.split()
        return words + [*zip(words, words[1:], strict=False)]

    for pairs in others:  # naive Bayes, learned from other scenes
        for pair in pairs.values():
            counts[True].update(features(pair.text))
            counts[False].update(features(pair.false_text))

    def score(text):
        return sum(math.log((counts[True][f] + 1) / (counts[False][f] + 1)) for f in features(text))

    for skill in SKILLS:
        pairs = [pairs[skill] for _, pairs in scenes if skill in pairs]
        right = sum(score(pair.text) > score(pair.false_text) for pair in pairs)
        assert abs(right / len(pairs) - 0.5) < 0.09, (skill, right / len(pairs))


def test_the_files_have_the_layout_of_sugarcrepe(tiny_world):
    for skill in SKILLS:
        content = json.loads((tiny_world / f'skills/{skill}.json').read_text())
        assert content
        for item in content.values():
            assert set(item) == {'filename', 'caption', 'negative_caption'}
            assert (tiny_world / 'skills/images' / item['filename']).is_file()
