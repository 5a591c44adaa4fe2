"""The retrieval loop, with a similarity of all pairs and with a scorer of the user."""

import json
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.dataset import DefaultSampler
from mmengine.evaluator import Evaluator
from torch import nn
from torch.utils.data import DataLoader

from xmodal.datasets import PrecompDataset, stack_regions
from xmodal.engine.loops import RetrievalLoop, Scorer, encoded_gallery, retrieval
from xmodal.engine.loops.encoded_gallery import EncodedGallery
from xmodal.errors import ConfigError
from xmodal.evaluation import Gallery, read_scores
from xmodal.models.base.region_preprocessor import RegionTextPreprocessor
from xmodal.models.sgraf import score_all_pairs
from xmodal.models.sgraf.pairwise import PairwiseSimilarity
from xmodal.models.sgraf.pooled import Vectors
from xmodal.registry import TASK_UTILS
from xmodal.structures import PackedTexts, Tokens
from xmodal.vocabulary import SPECIAL_WORDS, Vocabulary

WORDS = 'red green blue grey'.split()
IDS = [4, 2, 4, 9, 2, 2, 7, 9]
MATCHER = SimpleNamespace(score_all_pairs=None)
RUNNER = SimpleNamespace(iter=0, _load_from='epoch_1.pth', build_evaluator=Evaluator, model=MATCHER)
CAPTIONS = ['red', 'green red', 'red red', 'blue', 'green', 'green grey red', 'grey', 'blue grey']


class Counts(PairwiseSimilarity):
    """Counts of words times weights of an image, easy to compute by hand."""

    def __init__(self):
        super().__init__()
        self.parameter = nn.Parameter(torch.zeros(()))  # tells which device computes

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
    """Runs the loop and returns its metrics."""
    np.save(tmp_path / 'test_ims.npy', features)
    (tmp_path / 'test_caps.txt').write_text('\n'.join(CAPTIONS))
    (tmp_path / 'test_ids.txt').write_text('\n'.join(map(str, IDS)))
    Vocabulary([*SPECIAL_WORDS, *WORDS]).write(tmp_path / 'vocab.json')
    model = StandIn(RegionTextPreprocessor(dict(vocabulary=tmp_path / 'vocab.json')))
    dataset = PrecompDataset('test', str(tmp_path), test_mode=True)

    def run(evaluator, scorer='AllPairsScorer', dtype=None, **options):
        loader = DataLoader(dataset, 3, collate_fn=stack_regions)
        scorer = dict(type=scorer, dtype=dtype)
        loop = RetrievalLoop(RUNNER, loader, evaluator, scorer, **options)
        return loop.evaluate(model.eval())

    return run


def test_a_sampler_that_repeats_images_for_several_ranks_is_refused(monkeypatch):
    monkeypatch.setattr(retrieval, 'get_world_size', lambda: 2)
    loader = DataLoader(range(5), sampler=DefaultSampler(range(5), shuffle=False))
    with pytest.raises(ConfigError, match='each image once.*round_up=False'):
        RetrievalLoop(RUNNER, loader, dict(type='RetrievalMetric'), dict(type='AllPairsScorer'))


def test_folds_that_do_not_divide_the_images_are_refused_before_anything_is_scored():
    evaluator = [dict(type='RetrievalMetric'), dict(type='RetrievalMetric', folds=5, prefix='1k')]
    with pytest.raises(ValueError, match=r'12 images .* 5 folds, .*RetrievalMetric\.folds'):
        RetrievalLoop(RUNNER, DataLoader(range(12)), evaluator, dict(type='AllPairsScorer'))


def test_different_folds_that_re_ranking_cannot_take_are_refused_at_once():
    evaluator = [dict(type='RetrievalMetric'), dict(type='RetrievalMetric', folds=3, prefix='1k')]
    loader, scorer = DataLoader(range(12)), dict(type='ITMReranker', topk=4)
    with pytest.raises(ConfigError, match=r'folds=\[1, 3\].*test the metrics one by one'):
        RetrievalLoop(RUNNER, loader, evaluator, scorer)
    runner = SimpleNamespace(build_evaluator=Evaluator, model=nn.Identity())
    RetrievalLoop(runner, loader, evaluator, {**scorer, 'topk': 0})


@pytest.mark.parametrize(
    'scorer, model, message',
    [
        ('AllPairsScorer', nn.Identity(), 'ImageTextMatcher, and Identity has none.*ITMReranker'),
        ('CascadeScorer', nn.Identity(), 'ImageTextMatcher, and Identity has none.*ITMReranker'),
        ('ITMReranker', MATCHER, 'embeddings, which SimpleNamespace does not .*AllPairsScorer'),
    ],
)
def test_a_model_that_a_scorer_does_not_take_is_refused_before_the_training(scorer, model, message):
    runner = SimpleNamespace(build_evaluator=Evaluator, model=model)
    with pytest.raises(ConfigError, match=message):
        RetrievalLoop(
            runner, DataLoader(range(12)), dict(type='RetrievalMetric'), dict(type=scorer)
        )


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
    assert found.text_to_image.tolist() == [0, 0, 1, 1, 1, 2, 2, 3]
    for column, caption in enumerate(found.captions):
        numbers = [1, *(4 + WORDS.index(word) for word in caption.split()), 2]
        for row in range(4):
            logit = sum(features[row, :, number].sum(dtype=np.float64) for number in numbers)
            assert found.scores[row, column] == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-6)


def test_rankings_are_saved_for_the_report(evaluate, tmp_path):
    options = dict(save_scores=tmp_path / 'scores.npz', save_rankings=tmp_path / 'rankings.json')
    metrics = evaluate(dict(type='RetrievalMetric', prefix='all'), **options)
    rankings = json.loads((tmp_path / 'rankings.json').read_text())
    assert rankings['metrics'] == metrics and rankings['checkpoint'] == 'epoch_1.pth'
    assert rankings['folds'] == {'all': 1}
    assert rankings['images'] == ['image 4', 'image 2', 'image 9', 'image 7']
    found = read_scores(tmp_path / 'scores.npz')
    assert rankings['texts'] == found.captions.tolist()
    assert rankings['text_to_image'] == found.text_to_image.tolist()
    assert rankings['ranked_texts'] == [
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


def test_several_metrics_of_one_gallery_have_their_prefixes(evaluate, capsys):
    alone = evaluate(dict(type='RetrievalMetric'))
    halves = dict(type='RetrievalMetric', folds=2, prefix='halves')
    metrics = evaluate([halves, dict(type='RetrievalMetric', prefix='all')])
    assert {
        name.removeprefix('all/'): value
        for name, value in metrics.items()
        if name.startswith('all/')
    } == alone
    assert metrics['halves/t2i/R@1'] >= alone['t2i/R@1'] and 'halves/rsum_std' in metrics
    assert 'halves, mean of 2 folds' in capsys.readouterr().out


def test_scores_are_not_written_over(evaluate, tmp_path):
    (tmp_path / 'scores.npz').touch()
    with pytest.raises(FileExistsError, match='save_scores='):
        evaluate(dict(type='RetrievalMetric'), save_scores=tmp_path / 'scores.npz')


def gallery_of(rows, tokens, texts, counts):
    """What a rank encodes of the given images."""
    captions = torch.arange(len(texts)).split(counts)
    numbers = [number for row in rows for number in captions[row].tolist()]
    return EncodedGallery(
        Tokens(tokens[rows]),
        PackedTexts.from_list([texts[number] for number in numbers]),
        image_embeddings=None,
        text_embeddings=torch.tensor(numbers)[:, None],
        text_counts=torch.tensor([counts[row] for row in rows]),
        sample_indices=torch.tensor(rows),
        image_ids=[10 + row for row in rows],
        image_names=[f'{row}.png' for row in rows],
        captions=[str(number) for number in numbers],
    )


@pytest.fixture
def shares(monkeypatch):
    """The shares of two ranks, of which the second gathers, with what each of them sends."""
    tokens = torch.rand(5, 3, 2)
    texts = [torch.full((1 + number % 3, 2), number) for number in range(7)]
    counts = [1, 2, 1, 1, 2]
    ranks = [gallery_of(rows, tokens, texts, counts) for rows in ([0, 2, 4], [1, 3])]

    def all_gather(share):
        assert len(share.captions) == 3
        first = ranks[0] if share.image_tokens else ranks[0]._replace(image_tokens=None)
        return [first, share]

    monkeypatch.setattr(encoded_gallery, 'get_world_size', lambda: 2)
    monkeypatch.setattr(encoded_gallery, 'all_gather_object', all_gather)
    return ranks, gallery_of(list(range(5)), tokens, texts, counts)


@pytest.mark.parametrize('with_image_tokens', [True, False])
def test_the_shares_of_several_ranks_join_to_what_one_rank_has(shares, with_image_tokens):
    ranks, expected = shares
    whole = ranks[1].gather(with_image_tokens)
    for name in ('text_embeddings', 'text_counts', 'sample_indices', 'text_to_image'):
        assert getattr(whole, name).equal(getattr(expected, name)), name
    for name in ('image_ids', 'image_names', 'captions'):
        assert getattr(whole, name) == getattr(expected, name), name
    assert whole.captions == list('0123456')
    for mine, theirs in zip(whole.texts, expected.texts, strict=True):
        assert mine.equal(theirs)
    if with_image_tokens:
        assert whole.image_rows is None
        assert whole.image_tokens.embeddings.equal(expected.image_tokens.embeddings)
    else:  # they stay on their rank
        assert whole.image_rows.tolist() == [1, 3]
        assert whole.image_tokens.embeddings.equal(ranks[1].image_tokens.embeddings)


def test_what_a_rank_sends_is_as_large_as_its_tokens():
    captions, length, width = 200, 10, 32
    padded = torch.rand(captions, length + 5, width)
    mask = (torch.arange(length + 5) < length).expand(captions, -1)
    share = EncodedGallery(
        Tokens(torch.rand(8, 4, width)),
        PackedTexts.from_padded(padded, mask),
        image_embeddings=None,
        text_embeddings=None,
        text_counts=torch.full((8,), 25),
        sample_indices=torch.arange(8),
        image_ids=list(range(8)),
        image_names=['an image'] * 8,
        captions=['a caption'] * captions,
    )
    assert len(share.texts.lengths) == captions
    assert share.texts.select(torch.tensor([3])).values.equal(padded[3, :length])
    tokens = 4 * width * (captions * length + 8 * 4)
    assert tokens < len(pickle.dumps(share)) < 1.2 * tokens


def test_an_unknown_precision_is_named(evaluate):
    with pytest.raises(ValueError, match="dtype='float8', expected 'float16'"):
        evaluate(dict(type='RetrievalMetric'), dtype='float8')


@TASK_UTILS.register_module(force=True)
class FirstRegionScorer(Scorer):
    """What a user may write: the first feature of the first region, for every text."""

    def __init__(self, dtype):
        self.dtype = dtype

    def encode(self, model, inputs, data_samples):
        names = [f'{sample.image_id}.jpg' for sample in data_samples]
        words = PackedTexts.from_padded(inputs.input_ids, inputs.attention_mask)
        images = model.encode_image(inputs.images)
        return EncodedGallery.from_samples(data_samples, names, images, words)

    def score(self, model, encoded, folds=(1,)):
        assert folds == {1}
        scores = encoded.image_tokens.embeddings[:, 0, :1].expand(-1, len(encoded.captions))
        return Gallery(scores, encoded.text_to_image)


def test_a_scorer_of_the_user_is_one_class_and_one_config_key(evaluate, features, tmp_path):
    options = dict(save_scores=tmp_path / 'scores.npz', save_rankings=tmp_path / 'rankings.json')
    metrics = evaluate(dict(type='RetrievalMetric'), 'FirstRegionScorer', **options)
    scores = read_scores(tmp_path / 'scores.npz').scores
    assert (scores == features[:, 0, :1]).all() and scores.shape == (4, 8)
    best = int(features[:, 0, 0].argmax())
    assert metrics['t2i/R@1'] == 100 * [2, 3, 2, 1][best] / 8
    assert json.loads((tmp_path / 'rankings.json').read_text())['images'][0] == '4.jpg'
