"""The embedded world as SNLI-VE."""

import json
import math
from collections import Counter, defaultdict

import pytest

from xmodal.datasets.shapes.entailment import write_hypotheses
from xmodal.datasets.shapes.exporters import TASK_WORDS
from xmodal.datasets.shapes.grammar import Description, Statement, vocabulary
from xmodal.datasets.shapes.scene import OPPOSITE, is_held_out, sample_scene

LABELS = ('entailment', 'contradiction', 'neutral')


@pytest.fixture(scope='module')
def written():
    """(scene, hypotheses) of many scenes, by split."""
    scenes = {
        split: [sample_scene(0, split, index) for index in range(count)]
        for split, count in (('train', 800), ('val', 200), ('test', 200))
    }
    return {
        split: [(scene, write_hypotheses(split, scene)) for scene in own]
        for split, own in scenes.items()
    }


def as_statement(link):
    a, name, b = link
    mentions = tuple(Description(thing.shape, thing.colour) for thing in (a, b))
    return Statement(mentions, ((name, (0, 1)),))


@pytest.mark.parametrize('split', ['train', 'val', 'test'])
def test_labels_are_true_of_the_scene(written, split):
    for scene, hypotheses in written[split]:
        for label, (_, link) in hypotheses.items():
            statement = as_statement(link)
            a, name, b = link
            shown = [statement.mentions[place].referents(scene) for place in (0, 1)]
            reverse = as_statement((a, OPPOSITE[name], b))
            assert statement.holds(scene) == (label == 'entailment')
            assert reverse.holds(scene) == (label == 'contradiction')
            # "the" names one thing, and neutral is what names something that is not shown.
            fitting = sorted(map(len, shown))
            assert fitting in ([[0, 0], [0, 1]] if label == 'neutral' else [[1, 1]])


def test_sizes_and_textures_that_are_said_are_those_of_the_thing(written):
    others = {'small': {'large', 'big'}, 'large': {'small', 'little'}}
    patterns = {'solid': {'striped', 'dotted', 'spotted'}, 'striped': {'plain', 'dotted'}}
    for _, hypotheses in written['val']:
        for text, (a, _, b) in hypotheses.values():
            words = set(text.split())
            for thing, other in ((a, b), (b, a)):
                if thing.size == other.size:
                    assert not words & others[thing.size]
                if thing.texture == other.texture:
                    assert not words & patterns.get(thing.texture, set())


def test_nearly_every_scene_has_a_hypothesis_of_each_label(written):
    for own in written.values():
        found = [tuple(hypotheses) for _, hypotheses in own]
        assert set(found) <= {LABELS, ()}
        assert found.count(()) < 0.1 * len(found)


def test_training_names_no_held_out_composition_and_test_does(written):
    named = {
        split: [is_held_out(*link) for _, found in own for _, link in found.values()]
        for split, own in written.items()
    }
    assert not any(named['train']) and not any(named['val'])
    assert 0.1 < sum(named['test']) / len(named['test']) < 0.6


def test_words_are_of_the_vocabulary(written):
    known = {*vocabulary(), *(word for words in TASK_WORDS for word in words)}
    for own in written.values():
        texts = [text for _, found in own for text, _ in found.values()]
        assert known.issuperset(' '.join(texts).split())


def grams(text, longest):
    words = text.split()
    return [
        (*words[start : start + size],)
        for size in range(1, longest + 1)
        for start in range(len(words) - size + 1)
    ]


def blind_accuracy(train, test, features):
    """A reader of the words alone (naive Bayes), taught by one split and asked about another."""
    counts = defaultdict(Counter)
    for text, label in train:
        counts[label].update(features(text))
    totals = {label: sum(counts[label].values()) for label in LABELS}

    def score(text, label):
        own = counts[label]
        return sum(math.log((own[f] + 1) / (totals[label] + 1e4)) for f in features(text))

    hits = [max(LABELS, key=lambda name: score(text, name)) == label for text, label in test]
    return sum(hits) / len(hits)


@pytest.mark.parametrize('split', ['val', 'test'])
@pytest.mark.parametrize(
    'features',
    [
        pytest.param(lambda text: [tuple(text.split()[:3])], id='first three words'),
        pytest.param(lambda text: grams(text, 1), id='words'),
        pytest.param(lambda text: grams(text, 4), id='runs of words'),
        pytest.param(lambda text: [(len(text.split()),)], id='length'),
    ],
)
def test_the_words_alone_do_not_give_the_label_away(written, split, features):
    pairs = {
        name: [(text, label) for _, found in own for label, (text, _) in found.items()]
        for name, own in written.items()
    }
    assert blind_accuracy(pairs['train'], pairs[split], features) < 0.39


def test_the_file_has_the_fields_of_snli_ve(tiny_world):
    for split in ('train', 'dev', 'test'):
        lines = (tiny_world / f'snli_ve/snli_ve_{split}.jsonl').read_text().splitlines()
        items = [json.loads(line) for line in lines]
        assert items
        for item in items:
            assert set(item) == {
                'Flickr30K_ID',
                'captionID',
                'pairID',
                'sentence1',
                'sentence2',
                'gold_label',
                'annotator_labels',
            }
            assert (tiny_world / f'images/{item["Flickr30K_ID"]}.png').exists()
        ids = [item['pairID'] for item in items]
        assert len(set(ids)) == len(ids)
