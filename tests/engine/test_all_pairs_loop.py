"""Evaluation that scores every image with every caption."""

import json
import pickle

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from xmodal.datasets import PrecompDataset, stack_regions
from xmodal.engine.loops.all_pairs import EncodedShare, MatchingLoop
from xmodal.evaluation import read_scores
from xmodal.models.base.region_preprocessor import RegionTextPreprocessor
from xmodal.models.sgraf import score_all_pairs
from xmodal.models.sgraf.pairwise import PairwiseSimilarity
from xmodal.models.sgraf.pooled import Vectors
from xmodal.structures import Tokens
from xmodal.vocabulary import SPECIAL_WORDS, Vocabulary

WORDS = 'red green blue grey'.split()
IDS = [4, 2, 4, 9, 2, 2, 7, 9]
CAPTIONS = ['red', 'green red', 'red red', 'blue', 'green', 'green grey red', 'grey', 'blue grey']


class Counts(PairwiseSimilarity):
    """Counts of words against weights of an image, all in the open."""

    def __init__(self):
        super().__init__()
        self.place = nn.Parameter(torch.zeros(()))  # says which device computes

    def precompute_images(self, images, dtype):
        return Vectors(images.embeddings.sum(1))

    def precompute_texts(self, texts, dtype):
        assert not texts.embeddings[..., 0].any()  # no padding
        return Vectors(texts.embeddings.sum(1))

    def score(self, images, texts, weights):
        return images.vectors @ texts.vectors.T

    def word_bytes(self, dtype):
        return 4

    def to_scores(self, logits):
        return logits.sigmoid()

    def forward(self, images, texts, needed=None):
        raise AssertionError('evaluation goes tile by tile')


class StandIn(nn.Module):
    """Regions and words as they are."""

    def __init__(self, data_preprocessor):
        super().__init__()
        self.data_preprocessor = data_preprocessor
        self.similarity = Counts()

    def score_all_pairs(self, images, texts, **options):
        return score_all_pairs(self.similarity, images, texts, **options)

    def encode_image(self, regions):
        return Tokens(regions.features, regions.attention_mask)

    def encode_text(self, input_ids, attention_mask):
        return Tokens(nn.functional.one_hot(input_ids, 8).float(), attention_mask)


@pytest.fixture
def features():
    return np.random.default_rng(0).standard_normal((4, 3, 8)).astype(np.float32)


@pytest.fixture
def evaluate(tmp_path, features):
    """Runs the loop and gives its metrics."""
    np.save(tmp_path / 'test_ims.npy', features)
    (tmp_path / 'test_caps.txt').write_text('\n'.join(CAPTIONS))
    (tmp_path / 'test_ids.txt').write_text('\n'.join(map(str, IDS)))
    Vocabulary([*SPECIAL_WORDS, *WORDS]).write(tmp_path / 'vocab.json')
    model = StandIn(RegionTextPreprocessor(dict(vocabulary=tmp_path / 'vocab.json')))
    dataset = PrecompDataset('test', str(tmp_path), test_mode=True)

    def run(evaluator, **options):
        loader = DataLoader(dataset, 3, collate_fn=stack_regions)
        return MatchingLoop(None, loader, evaluator, **options).evaluate(model.eval())

    return run


def test_every_caption_is_scored_with_every_image_once_in_the_order_of_the_images(
    evaluate, features, tmp_path
):
    evaluate(dict(type='RetrievalMetric'), save_scores=tmp_path / 'scores.npz')
    found = read_scores(tmp_path / 'scores.npz')
    assert found.image_ids.tolist() == [4, 2, 9, 7]
    assert found.captions.tolist() == [
        'red',
        'red red',
        'green red',
        'green',
        'green grey red',
        'blue',
        'blue grey',
        'grey',
    ]
    assert found.owner.tolist() == [0, 0, 1, 1, 1, 2, 2, 3]
    for column, caption in enumerate(found.captions):
        numbers = [1, *(4 + WORDS.index(word) for word in caption.split()), 2]
        for row in range(4):
            logit = sum(features[row, :, number].sum(dtype=np.float64) for number in numbers)
            assert found.scores[row, column] == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-6)


def test_rankings_are_saved_for_the_report(evaluate, tmp_path):
    options = dict(save_scores=tmp_path / 'scores.npz', save_rankings=tmp_path / 'rankings.json')
    metrics = evaluate({'all': dict(type='RetrievalMetric')}, **options)
    rankings = json.loads((tmp_path / 'rankings.json').read_text())
    assert rankings['metrics'] == metrics
    assert rankings['images'] == ['image 4', 'image 2', 'image 9', 'image 7']
    found = read_scores(tmp_path / 'scores.npz')
    assert rankings['texts'] == found.captions.tolist()
    assert rankings['owner'] == found.owner.tolist()
    assert rankings['texts_of_image'] == [
        sorted(range(8), key=lambda text: -row[text]) for row in found.scores
    ]
    with pytest.raises(FileExistsError, match='save_rankings='):
        evaluate(dict(type='RetrievalMetric'), save_rankings=tmp_path / 'rankings.json')


def test_the_metric_is_that_of_the_logits(evaluate, features):
    metrics = evaluate(dict(type='RetrievalMetric'))
    hits = 0
    for caption, number in zip(CAPTIONS, IDS, strict=True):
        numbers = [1, *(4 + WORDS.index(word) for word in caption.split()), 2]
        logits = features[:, :, numbers].sum((1, 2))
        hits += [4, 2, 9, 7][logits.argmax()] == number
    assert metrics['t2i/R@1'] == pytest.approx(100 * hits / len(CAPTIONS))


def test_several_metrics_of_the_same_scores_have_their_names(evaluate, capsys):
    alone = evaluate(dict(type='RetrievalMetric'))
    metric = {'halves': dict(type='RetrievalMetric', folds=2), 'all': dict(type='RetrievalMetric')}
    metrics = evaluate(metric)
    assert {
        name.removeprefix('all/'): value
        for name, value in metrics.items()
        if name.startswith('all/')
    } == alone
    assert metrics['halves/t2i/R@1'] >= alone['t2i/R@1'] and 'halves/rsum_std' in metrics
    assert 'in 2 folds, their mean' in capsys.readouterr().out


def test_scores_are_not_written_over(evaluate, tmp_path):
    (tmp_path / 'scores.npz').touch()
    with pytest.raises(FileExistsError, match='save_scores='):
        evaluate(dict(type='RetrievalMetric'), save_scores=tmp_path / 'scores.npz')


def test_the_shares_of_several_ranks_join_to_what_one_rank_has():
    tokens = torch.rand(5, 3, 2)
    texts = [torch.full((1, 2), number) for number in range(7)]
    counts = [1, 2, 1, 1, 2]
    captions = torch.arange(7).split(counts)

    def share(rows):
        own = [number for row in rows for number in captions[row].tolist()]
        return EncodedShare(
            Tokens(tokens[rows]),
            torch.cat([texts[n] for n in own]),
            torch.tensor([len(texts[n]) for n in own]),
            torch.tensor([counts[r] for r in rows]),
            torch.tensor(rows),
            [10 + row for row in rows],
            [str(n) for n in own],
        )

    whole = EncodedShare.join([share([0, 2, 4]), share([1, 3])])
    assert torch.equal(whole.images.embeddings, tokens)
    assert torch.cat(whole.texts)[:, 0].tolist() == list(range(7))
    assert whole.counts.tolist() == counts and whole.image_ids == [10, 11, 12, 13, 14]
    assert whole.captions == list('0123456')


def test_what_a_rank_sends_is_as_large_as_its_tokens():
    captions, length, width = 200, 10, 32
    share = EncodedShare(
        Tokens(torch.rand(8, 4, width)),
        torch.rand(captions * length, width),
        torch.full((captions,), length),
        torch.full((8,), 25),
        torch.arange(8),
        list(range(8)),
        ['a caption'] * captions,
    )
    assert len(share.texts) == captions and share.texts[3].shape == (length, width)
    tokens = 4 * width * (captions * length + 8 * 4)
    assert tokens < len(pickle.dumps(share.cpu())) < 1.2 * tokens


def test_an_unknown_precision_is_named(evaluate):
    with pytest.raises(ValueError, match="dtype='float8', expected 'float16'"):
        evaluate(dict(type='RetrievalMetric'), dtype='float8')
