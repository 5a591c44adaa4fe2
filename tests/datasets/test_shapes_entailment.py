"""The embedded world as SNLI-VE."""

import json
import math
from collections import Counter, defaultdict

import pytest

from xmodal.datasets.shapes.entailment import generate_hypotheses
from xmodal.datasets.shapes.exporters import TASK_WORDS
from xmodal.datasets.shapes.grammar import vocabulary
from xmodal.datasets.shapes.scene import OPPOSITE, is_held_out, sample_scene
from xmodal.datasets.shapes.statements import Description, Statement

LABELS = ('entailment', 'contradiction', 'neutral')


@pytest.fixture(scope='module')
def scenes_with_hypotheses():
    """Scenes with their hypotheses, by split."""
    scenes = {
        split: [sample_scene(0, split, index) for index in range(count)]
        for split, count in (('train', 800), ('val', 200), ('test', 200))
    }
    return {
        split: [(scene, generate_hypotheses(split, scene)) for scene in split_scenes]
        for split, split_scenes in scenes.items()
    }


def as_statement(link):
    a, name, b = link
    mentions = tuple(Description(obj.shape, obj.colour) for obj in (a, b))
    return Statement(mentions, ((name, (0, 1)),))


@pytest.mark.parametrize('split', ['train', 'val', 'test'])
def test_labels_are_true_of_the_scene(scenes_with_hypotheses, split):
    for scene, hypotheses in scenes_with_hypotheses[split]:
        for label, (_, link) in hypotheses.items():
            statement = as_statement(link)
            a, name, b = link
            referents = [mention.referents(scene) for mention in statement.mentions]
            reverse = as_statement((a, OPPOSITE[name], b))
            assert statement.holds(scene) == (label == 'entailment')
            assert reverse.holds(scene) == (label == 'contradiction')
            # "the" refers to one object; a neutral hypothesis names one that is not shown.
            counts = sorted(map(len, referents))
            assert counts in ([[0, 0], [0, 1]] if label == 'neutral' else [[1, 1]])


def test_named_sizes_and_textures_are_those_of_the_object(scenes_with_hypotheses):
    other_sizes = {'small': {'large', 'big'}, 'large': {'small', 'little'}}
    other_textures = {'solid': {'striped', 'dotted', 'spotted'}, 'striped': {'plain', 'dotted'}}
    for _, hypotheses in scenes_with_hypotheses['val']:
        for text, (a, _, b) in hypotheses.values():
            words = set(text.split())
            for obj, other in ((a, b), (b, a)):
                if obj.size == other.size:
                    assert not words & other_sizes[obj.size]
                if obj.texture == other.texture:
                    assert not words & other_textures.get(obj.texture, set())


def test_nearly_every_scene_has_a_hypothesis_of_each_label(scenes_with_hypotheses):
    for pairs in scenes_with_hypotheses.values():
        labels = [tuple(hypotheses) for _, hypotheses in pairs]
        assert set(labels) <= {LABELS, ()}
        assert labels.count(()) < 0.1 * len(labels)


def test_training_names_no_held_out_composition_and_test_does(scenes_with_hypotheses):
    held_out = {
        split: [is_held_out(*link) for _, texts in pairs for _, link in texts.values()]
        for split, pairs in scenes_with_hypotheses.items()
    }
    assert not any(held_out['train']) and not any(held_out['val'])
    assert 0.1 < sum(held_out['test']) / len(held_out['test']) < 0.6


def test_all_words_are_in_the_vocabulary(scenes_with_hypotheses):
    known = {*vocabulary(), *(word for words in TASK_WORDS for word in words)}
    for pairs in scenes_with_hypotheses.values():
        texts = [text for _, hypotheses in pairs for text, _ in hypotheses.values()]
        assert known.issuperset(' '.join(texts).split())


def grams(text, longest):
    words = text.split()
    return [
        (*words[start : start + size],)
        for size in range(1, longest + 1)
        for start in range(len(words) - size + 1)
    ]


def blind_accuracy(train, test, features):
    """Accuracy of a model that reads only the words (naive Bayes), from one split to another."""
    counts = defaultdict(Counter)
    for text, label in train:
        counts[label].update(features(text))
    totals = {label: sum(counts[label].values()) for label in LABELS}

    def score(text, label):
        label_counts = counts[label]
        return sum(math.log((label_counts[f] + 1) / (totals[label] + 1e4)) for f in features(text))

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
def test_the_words_alone_do_not_reveal_the_label(scenes_with_hypotheses, split, features):
    pairs = {
        name: [(text, label) for _, texts in scenes for label, (text, _) in texts.items()]
        for name, scenes in scenes_with_hypotheses.items()
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
