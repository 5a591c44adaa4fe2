"""Re-ranking against ALBEF's protocol written out, with planted and with real models."""

import json
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from xmodal.engine.launch import build_runner
from xmodal.engine.loops import ITMReranker
from xmodal.engine.loops.encoded_gallery import EncodedGallery
from xmodal.engine.loops.scorers import itm_reranker
from xmodal.engine.loops.scorers import match_pairs as match_pairs_module
from xmodal.engine.loops.scorers.match_pairs import match_pairs
from xmodal.evaluation import read_scores
from xmodal.evaluation.retrieval import retrieval_metrics
from xmodal.registry import MODELS
from xmodal.structures import Encoded, PackedTexts, Tokens

TEMPERATURE = 0.5


class PlantedModel(nn.Module):
    """ITM scores from a table, for images and texts whose tokens are their numbers."""

    contrastive_head = SimpleNamespace(scale=lambda cosines: cosines / TEMPERATURE)
    matching_head = object()

    def __init__(self, itm_scores):
        super().__init__()
        self.parameter = nn.Parameter(torch.zeros(()))  # tells which device computes
        self.itm_scores, self.scored = itm_scores, []

    def match(self, image, text, pairs):
        images = image.embeddings[pairs[:, 0], 0, 0].long()
        texts = text.embeddings[pairs[:, 1], 0, 0].long()
        self.scored += zip(images.tolist(), texts.tolist(), strict=True)
        return self.itm_scores[images, texts]


def plant(num_images, captions):
    """A gallery and its model: ITC and ITM both know something, and err about different pairs."""
    torch.manual_seed(0)
    text_to_image = torch.arange(num_images).repeat_interleave(captions)
    images = torch.randn(num_images, 16)
    texts = images[text_to_image] + 2 * torch.randn(len(text_to_image), 16)
    itm_scores = torch.randn(num_images, len(text_to_image))
    itm_scores[text_to_image, torch.arange(len(text_to_image))] += 2
    encoded = EncodedGallery(
        Tokens(torch.arange(num_images)[:, None, None].float()),
        PackedTexts(
            torch.arange(len(text_to_image)).float()[:, None], torch.ones_like(text_to_image)
        ),
        image_embeddings=nn.functional.normalize(images),
        text_embeddings=nn.functional.normalize(texts),
        text_counts=torch.full((num_images,), captions),
        sample_indices=torch.arange(num_images),
        image_ids=list(range(num_images)),
        image_names=[f'{row}.png' for row in range(num_images)],
        captions=[str(number) for number in range(len(text_to_image))],
        image_rows=torch.arange(num_images),
    )
    return encoded, PlantedModel(itm_scores)


def reference_matrices(itc, itm, topk):
    """The two matrices of `evaluation` in ALBEF's Retrieval.py: (I, T), and (T, I)."""
    num_images, num_texts = itc.shape
    i2t = torch.full((num_images, num_texts), -100.0)
    for i in range(num_images):
        for t in itc[i].topk(topk).indices.tolist():
            i2t[i, t] = itm[i, t]
    t2i = torch.full((num_texts, num_images), -100.0)
    for t in range(num_texts):
        for i in itc[:, t].topk(topk).indices.tolist():
            t2i[t, i] = itm[i, t]
    return i2t, t2i


def reference_recalls(i2t, t2i, text_to_image):
    """The recalls of `itm_eval` in ALBEF's Retrieval.py."""
    best = {'i2t': [], 't2i': []}
    for i, row in enumerate(i2t):
        order = row.argsort(descending=True).tolist()
        best['i2t'].append(min(order.index(t) for t, k in enumerate(text_to_image) if k == i))
    for t, row in enumerate(t2i):
        best['t2i'].append(row.argsort(descending=True).tolist().index(text_to_image[t]))
    return {
        f'{direction}/R@{k}': 100 * sum(place < k for place in places) / len(places)
        for direction, places in best.items()
        for k in (1, 5, 10)
    }


@pytest.mark.parametrize('add', [False, True], ids=['itm', 'itm + itc'])
@pytest.mark.parametrize('folds', [1, 2])
def test_each_direction_re_ranks_its_own_candidates_as_albef_does(add, folds):
    encoded, model = plant(num_images=80, captions=5)
    itc = encoded.image_embeddings @ encoded.text_embeddings.T
    size, wanted, expected, joined = 80 // folds, set(), [], []
    for first in range(0, 80, size):
        part = slice(first, first + size), slice(5 * first, 5 * (first + size))
        text_to_image = (encoded.text_to_image[part[1]] - first).tolist()
        # ITM is sure that every second image matches a text that only the text's search finds.
        i2t, t2i = (each > -100 for each in reference_matrices(itc[part], itc[part], topk=10))
        for i in range(0, size, 2):
            wrong = [t for t in (t2i.T & ~i2t)[i].nonzero().flatten() if text_to_image[t] != i]
            model.itm_scores[part][i, wrong[0]] = 50
        itm = model.itm_scores[part] + (itc[part] / TEMPERATURE if add else 0)
        i2t, t2i = reference_matrices(itc[part], itm, topk=10)
        both = torch.maximum(i2t, t2i.T)
        expected.append((i2t, t2i.T, reference_recalls(i2t, t2i, text_to_image)))
        joined.append(reference_recalls(both, both.T, text_to_image))
        wanted |= {(first + i, 5 * first + t) for i, t in (both > -100).nonzero().tolist()}

    scorer = ITMReranker(topk=10, add_similarity=add, pair_batch=7)
    gallery = scorer.score(model, encoded, {folds})
    found = retrieval_metrics(gallery, folds)
    for fold, (*matrices, _) in enumerate(expected):
        for scores, reference in zip(gallery.directions, matrices, strict=True):
            rows, columns = reference.shape
            scores = scores[fold * rows :][:rows, fold * columns :][:, :columns].float()
            torch.testing.assert_close(scores[reference > -100], reference[reference > -100])
    for name in joined[0]:
        assert found[name] == pytest.approx(sum(part[-1][name] for part in expected) / folds)
    # In one matrix with the candidates of both directions the wrong texts would be first.
    assert found['i2t/R@1'] > sum(part['i2t/R@1'] for part in joined) / folds + 30
    # A pair that both directions want is scored once.
    assert len(model.scored) == len(wanted) < 10 * (80 + 400) and set(model.scored) == wanted


def test_what_is_no_candidate_ranks_below_in_the_order_of_itc():
    encoded, model = plant(num_images=12, captions=3)
    gallery = ITMReranker(topk=4).score(model, encoded)
    for direction in (gallery.scores, gallery.t2i_scores.T):
        first_stage = gallery.itc_scores if direction is gallery.scores else gallery.itc_scores.T
        itm = model.itm_scores if direction is gallery.scores else model.itm_scores.T
        for query, row in enumerate(direction):
            best, rest = row.argsort(descending=True).split([4, len(row) - 4])
            by_itc = first_stage[query].argsort(descending=True)
            assert rest.tolist() == by_itc[4:].tolist()
            candidates = by_itc[:4]
            assert best.equal(candidates[itm[query, candidates].argsort(descending=True)])


def test_rankings_and_scores_of_both_directions_are_saved(tiny_config, tmp_path):
    tiny_config.test_cfg.scorer.update(topk=3, add_similarity=False)
    tiny_config.test_cfg.update(
        save_rankings=str(tmp_path / 'rankings.json'), save_scores=str(tmp_path / 'scores.npz')
    )
    runner = build_runner(tiny_config)
    for parameter in runner.model.parameters():
        nn.init.normal_(parameter, std=0.2)
    metrics = runner.test()
    gallery = runner.test_loop.scorer.score(runner.model, runner.test_loop.encode(runner.model))
    saved = read_scores(tmp_path / 'scores.npz')
    torch.testing.assert_close(torch.from_numpy(saved.scores), gallery.scores)
    torch.testing.assert_close(torch.from_numpy(saved.t2i_scores), gallery.t2i_scores)
    assert not gallery.scores.equal(gallery.t2i_scores)
    again = retrieval_metrics(saved.gallery)
    assert again.items() <= metrics.items()
    rankings = json.loads((tmp_path / 'rankings.json').read_text())
    assert rankings['ranked_texts'] == saved.scores.argsort(1)[:, ::-1][:, :10].tolist()
    assert rankings['ranked_images'] == saved.t2i_scores.T.argsort(1)[:, ::-1][:, :10].tolist()


@torch.no_grad()
@pytest.mark.parametrize('add', [False, True])
def test_the_loop_with_all_candidates_ranks_every_pair_by_itm(tiny_config, add):
    tiny_config.test_cfg.scorer.update(topk=50, pair_batch=7, add_similarity=add)
    runner = build_runner(tiny_config)
    loop = runner.build_test_loop(tiny_config.test_cfg)
    model = runner.model.eval()
    encoded = loop.encode(model)
    gallery, captions = loop.scorer.score(model, encoded), encoded.captions
    assert gallery.scores.equal(gallery.t2i_scores)
    assert len(captions) == 50 and len(set(encoded.image_names)) == 10
    dataset = loop.dataloader.dataset
    for i in range(0, 10, 3):
        sample = dataset[i]
        for t in range(0, 50, 7):
            sample['data_samples'].text = [captions[t]]
            inputs = model.data_preprocessor(
                dict(inputs=sample['inputs'][None], data_samples=[sample['data_samples']]), False
            )['inputs']
            image = model.encode_image(inputs.images)
            text = model.encode_text(inputs.input_ids, inputs.attention_mask)
            fused = model.fuse(image.tokens, text.tokens)
            _, expected = model.heads['itm'](fused.text_tokens)[0]
            if add:
                cosine = (image.embedding * text.embedding).sum()
                expected = expected + cosine / model.heads['itc'].temperature()
            assert gallery.scores[i, t].item() == pytest.approx(expected.item(), abs=1e-4)


def test_pairs_have_the_same_scores_in_any_order_and_in_blocks(tiny_config, monkeypatch):
    model = MODELS.build(tiny_config.model).eval()
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    mask = torch.arange(9) < torch.tensor([4, 9, 6, 7, 5, 8, 4])[:, None]
    input_ids = torch.randint(5, 60, (7, 9))
    with torch.no_grad():
        images = model.encode_image(torch.randn(4, 3, 32, 32)).tokens
        texts = PackedTexts.from_padded(model.encode_text(input_ids, mask).tokens.embeddings, mask)
    pairs = torch.ones(4, 7).nonzero()[torch.randperm(28)]
    whole = match_pairs(model, images, texts, pairs, pair_batch=100)
    monkeypatch.setattr(match_pairs_module, 'TEXTS_AT_ONCE', 3)
    torch.testing.assert_close(
        match_pairs(model, images, texts, pairs, pair_batch=4), whole, atol=1e-5, rtol=1e-4
    )
    for (i, t), score in zip(pairs.tolist(), whole, strict=True):
        words = int(mask[t].sum())
        text = model.encode_text(input_ids[t : t + 1, :words], mask[t : t + 1, :words]).tokens
        fused = model.fuse(images.select(torch.tensor([i])), text)
        _, yes = model.heads['itm'](fused.text_tokens)[0]
        assert score.item() == pytest.approx(yes.item(), abs=1e-4)


@torch.no_grad()
def test_the_loop_encodes_every_text_once_as_it_would_alone(tiny_config, monkeypatch):
    monkeypatch.setattr(itm_reranker, 'TEXT_BATCH', 3)
    runner = build_runner(tiny_config)
    loop = runner.build_test_loop(tiny_config.test_cfg)
    model, encoded_ids = runner.model.eval(), []
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    encode_text = model.encode_text

    def recorded(input_ids, attention_mask):
        encoded_ids.extend(input_ids)
        return encode_text(input_ids, attention_mask)

    monkeypatch.setattr(model, 'encode_text', recorded)
    encoded = loop.encode(model)
    loop.scorer.score(model, encoded)
    assert len(encoded_ids) == len(encoded.captions) == 50
    for row in range(0, 50, 7):
        data = loop.dataloader.dataset[row // 5]
        sample = data['data_samples']
        sample.text = [encoded.captions[row]]
        inputs = model.data_preprocessor(
            dict(inputs=data['inputs'][None], data_samples=[sample]), False
        )['inputs']
        alone = encode_text(inputs.input_ids, inputs.attention_mask)
        words = encoded.texts.select(torch.tensor([row])).values
        torch.testing.assert_close(words, alone.tokens.embeddings[0], atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(
            encoded.text_embeddings[row], alone.embedding[0], atol=1e-6, rtol=1e-5
        )


def test_itc_alone_keeps_no_tokens(tiny_config):
    tiny_config.test_cfg.scorer.update(topk=0)
    runner = build_runner(tiny_config)
    loop = runner.build_test_loop(tiny_config.test_cfg)
    model, encode_image = runner.model.eval(), runner.model.encode_image
    encoded = loop.encode(model)
    assert encoded.image_tokens is None and encoded.texts is None
    gallery = loop.scorer.score(model, encoded)
    # A model of a plug-in may give embeddings alone.
    model.encode_image = lambda images: Encoded(None, encode_image(images).embedding)
    assert torch.equal(loop.scorer.score(model, loop.encode(model)).scores, gallery.scores)


def test_embeddings_that_are_not_normalised_are_refused():
    """Of a model of a plug-in: long ones would rank first for every query."""
    encoded = Encoded(None, 2 * torch.eye(3))
    model = SimpleNamespace(encode_image=lambda _: encoded, encode_text=lambda *_: encoded)
    model.matching_head = None
    words = torch.ones(3, 4, dtype=torch.int64)
    batch = SimpleNamespace(images=None, input_ids=words, attention_mask=words > 0)
    with pytest.raises(ValueError, match='SimpleNamespace makes embeddings of length 2 to 2, exp'):
        ITMReranker().encode(model, batch, [SimpleNamespace(text=['a'], image_path='a.png')] * 3)


def test_metrics_with_all_candidates_are_those_of_every_pair_fold_by_fold(tiny_config):
    tiny_config.test_evaluator.folds = 5
    tiny_config.test_cfg.scorer.update(topk=50, add_similarity=False)
    runner = build_runner(tiny_config)
    loop = runner.build_test_loop(tiny_config.test_cfg)
    found = loop.evaluate(runner.model.eval())
    assert loop.folds == {5}
    gallery = loop.scorer.score(runner.model, loop.encode(runner.model))  # every pair of all images
    expected = retrieval_metrics(gallery, folds=5)
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_reranking_refuses_metrics_of_different_folds(tiny_config):
    tiny_config.test_evaluator = [
        dict(type='RetrievalMetric', folds=5, prefix='fifths'),
        dict(type='RetrievalMetric', prefix='all'),
    ]
    runner = build_runner(tiny_config)
    with pytest.raises(ValueError, match=r'folds=\[1, 5\], but ITMReranker'):
        runner.test()
    tiny_config.test_cfg.scorer.topk = 0
    tiny_config.experiment_name = 'ITC alone'
    metrics = build_runner(tiny_config).test()
    assert {'fifths/rsum', 'fifths/rsum_std', 'all/rsum'} <= set(metrics)
