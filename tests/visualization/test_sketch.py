"""Figures of sketches."""

import logging
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from xmodal.models.base.region_preprocessor import RegionTextPreprocessor
from xmodal.models.necks import TEMDE
from xmodal.structures import Tokens
from xmodal.visualization import sketch
from xmodal.visualization.charts import to_svg
from xmodal.vocabulary import SPECIAL_WORDS, Vocabulary

WORDS = ['red', 'ring', 'the', 'the', 'red', 'bar'] * 10


@pytest.fixture(autouse=True)
def no_umap(monkeypatch):
    monkeypatch.setitem(sys.modules, 'umap', None)


@pytest.fixture
def assignments():
    """Soft assignments of 60 tokens to 8 centroids in each of 3 partitions."""
    shares = np.random.default_rng(0).random((60, 3, 8)) ** 8
    return shares / shares.sum(-1, keepdims=True)


def texts(axes):
    return [text.get_text() for text in axes.texts]


class OneHotModel(nn.Module):
    """An image-text matcher with one-hot words."""

    def __init__(self, vocabulary):
        super().__init__()
        self.data_preprocessor = RegionTextPreprocessor(dict(vocabulary=vocabulary))
        sides = ('image_pooling', 'text_pooling')
        self.similarity = nn.ModuleDict(
            {side: TEMDE(6, partitions=3, centroids=4) for side in sides}
        ).eval()

    def encode_text(self, input_ids, attention_mask):
        return Tokens(nn.functional.one_hot(input_ids, 6).float(), attention_mask)


def test_every_word_is_assigned_by_the_text_sketch(tmp_path):
    Vocabulary([*SPECIAL_WORDS, 'red', 'ring']).write(tmp_path / 'vocab.json')
    model = OneHotModel(tmp_path / 'vocab.json')
    actual, words = sketch.assign_words(model, ['red ring', 'ring', 'a red ring'])
    start, end = SPECIAL_WORDS[1:3]
    assert words == [
        start,
        'red',
        'ring',
        end,
        start,
        'ring',
        end,
        start,
        '<unk>',
        'red',
        'ring',
        end,
    ]
    for token, word in enumerate(words):
        index = [*SPECIAL_WORDS, 'red', 'ring'].index(word)
        one_hot = torch.eye(6)[index].view(1, 1, 6)
        expected = model.similarity.text_pooling.assign(one_hot)[0, 0]
        np.testing.assert_allclose(actual[token], expected.detach(), rtol=1e-5)


def test_a_model_without_a_text_sketch_assigns_nothing():
    assert sketch.assign_words(nn.Linear(1, 1), ['red']) == (None, [])


def test_without_umap_points_are_projected_with_pca_and_a_warning(assignments, monkeypatch):
    messages = []
    monkeypatch.setattr(sketch, 'print_log', lambda *arguments: messages.append(arguments))
    points = assignments[:, 0]
    actual, method = sketch.project_to_plane(points)
    assert method == 'PCA'
    [(message, _, level)] = messages
    assert re.match(r'umap-learn is missing \(.*umap.*\): ', message)
    assert level == logging.WARNING
    values, vectors = np.linalg.eigh(np.cov(points.T))
    for axis in (0, 1):
        expected = (points - points.mean(0)) @ vectors[:, -1 - axis]
        assert abs(np.corrcoef(actual[:, axis], expected)[0, 1]) == pytest.approx(1)
        assert actual[:, axis].var(ddof=1) == pytest.approx(values[-1 - axis])


def test_with_umap_points_are_projected_with_a_seed(assignments, monkeypatch):
    class Umap:
        def __init__(self, n_components, random_state):
            assert (n_components, random_state) == (2, 0)

        def fit_transform(self, points):
            return 2 * points[:, :2]

    monkeypatch.setitem(sys.modules, 'umap', SimpleNamespace(UMAP=Umap))
    actual, method = sketch.project_to_plane(assignments[:, 0])
    assert method == 'UMAP'
    assert (actual == 2 * assignments[:, 0, :2]).all()


def test_labels_are_at_the_median_of_the_tokens_of_their_word(assignments):
    figure = sketch.draw_words(assignments[:, 0], WORDS, labelled=['red', 'bar'])
    [axes] = figure.axes
    positions, _ = sketch.project_to_plane(assignments[:, 0])
    labels = {text.get_text(): text.get_position() for text in axes.texts}
    assert {'red', 'bar'} <= set(labels) and 'ring' not in labels
    of_word = positions[[word == 'red' for word in WORDS]]
    assert labels['red'] == pytest.approx(tuple(np.median(of_word, axis=0)))
    assert [len(line.get_xdata()) for line in axes.lines] == [20, 10]
    assert '<svg' in to_svg(figure)


def test_each_partition_has_a_panel_coloured_by_likeliest_centroid(assignments):
    figure = sketch.draw_partitions(assignments)
    assert len(figure.axes) == 3
    for partition, axes in enumerate(figure.axes):
        likeliest = assignments[:, partition].argmax(1)
        colours = axes.collections[0].get_facecolors()
        assert len(np.unique(colours, axis=0)) == len(np.unique(likeliest))
        for k in range(8):
            assert len(np.unique(colours[likeliest == k], axis=0)) <= 1
        assert texts(axes) == [str(k + 1) for k in np.unique(likeliest)]


def test_each_metric_has_a_panel_with_its_scores_in_the_cells_of_their_sizes():
    scores = {
        'R@1': np.array([[73.44, 71.0], [np.nan, 75.3], [74.0, 70.96]]),
        'MRR': np.array([[82.4, 80.5], [82.9, 82.3], [np.nan, np.nan]]),
    }
    figure = sketch.draw_sizes(scores, partitions=[20, 16, 8], centroids=[8, 20])
    recall, mrr = figure.axes
    expected = {(0, 0): '73.4', (1, 0): '71.0', (1, 1): '75.3', (0, 2): '74.0', (1, 2): '71.0'}
    assert {text.get_position(): text.get_text() for text in recall.texts} == expected
    expected = {(0, 0): '82.4', (1, 0): '80.5', (0, 1): '82.9', (1, 1): '82.3'}
    assert {text.get_position(): text.get_text() for text in mrr.texts} == expected
    assert [axes.get_title(loc='left') for axes in figure.axes] == ['R@1', 'MRR']
    for axes in figure.axes:
        assert [label.get_text() for label in axes.get_xticklabels()] == ['8', '20']
        assert [label.get_text() for label in axes.get_yticklabels()] == ['20', '16', '8']


def test_words_that_do_not_fit_the_tokens_are_an_error(assignments):
    with pytest.raises(ValueError, match='3 words for 60 tokens'):
        sketch.draw_words(assignments[:, 0], WORDS[:3], labelled=['red'])
    with pytest.raises(ValueError, match='do not contain blue'):
        sketch.draw_words(assignments[:, 0], WORDS, labelled=['red', 'blue'])
