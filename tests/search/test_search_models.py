"""Every model that gives vectors can search: images or regions, and any pooling."""

import numpy as np
import pytest
import torch

from xmodal.apis import Inferencer
from xmodal.datasets.region_store import RegionStore
from xmodal.errors import FileError
from xmodal.files import write_json
from xmodal.registry import MODELS
from xmodal.search import ImageIndex, Query
from xmodal.search.identity import PROBES, fingerprint
from xmodal.search.manifest import MANIFEST, read_manifest
from xmodal.search.model import query_vectors
from xmodal.search.output import print_hits

pytest.importorskip('faiss', reason="search needs the extra: pip install -e '.[search]'")
TEXTS = ['a red ring', 'two blue discs', 'a small green square']


@pytest.fixture
def prepare(relocated, tiny_world, tmp_path):
    """An inferencer with random weights, and what it can index."""

    def make(name):
        config = relocated(f'configs/{name}.py', tiny_world)
        store = str(tiny_world / 'regions/store')
        if name.startswith('temde'):
            config.model.image_encoder.feature_dims = RegionStore(store).feature_dims
            pipeline = [dict(type='LoadRegions', store=store), dict(type='PackRegionText')]
            config.test_dataloader.dataset = dict(
                type='AlbefJsonDataset', ann_file='none.json', pipeline=pipeline
            )
            source = store
        else:
            config.model.image_encoder.update(image_size=32, patch_size=8, pretrained=False)
            source = str(tiny_world / 'images/test')
        torch.manual_seed(0)
        model = MODELS.build(config.model)
        for name, value in model.state_dict().items():
            if name.endswith('thresholds'):  # of EMDE, which training fits
                value.zero_()
        torch.save(model.state_dict(), tmp_path / 'weights.pth')
        return Inferencer(config, tmp_path / 'weights.pth'), source

    return make


@pytest.mark.parametrize('pooling', ['mean', 'max', 'gpo', 'emde', 'temde'])
def test_dual_encoders_search_a_region_store(prepare, pooling, tmp_path, capsys):
    inferencer, store = prepare(f'temde/dual_{pooling}_shapes')
    index = ImageIndex(tmp_path / 'index', inferencer)
    index.update(store, dtype='float32', progress=False)
    names = [f'{store}::{image_id}' for image_id in map(RegionStore(store).image_id, range(48))]
    assert len(index.catalogue.ids()) == len(names) and not index.catalogue.broken()
    # The model compares tokens, pair by pair; it does not know the index's vectors.
    stems = [name.partition('::')[2] for name in names]
    image, text = inferencer.encode(stems, TEXTS)
    with torch.no_grad():
        similarity = inferencer.model.similarity
        expected = similarity.to_scores(similarity(image.tokens, text.tokens)).numpy()
    for column, hits in enumerate(index.search([Query(text) for text in TEXTS], len(names))):
        rows = [names.index(hit.image.path) for hit in hits]
        assert sorted(rows) == list(range(len(names)))
        np.testing.assert_allclose([h.score for h in hits], expected[rows, column], atol=1e-5)
        assert (np.diff(expected[rows, column]) <= 1e-5).all()
    print_hits(index.search([Query(TEXTS[0])], 3)[0], TEXTS[0])
    printed = capsys.readouterr().out
    assert 'cosine' in printed and 'size' not in printed and '0 × 0' not in printed
    before = index.catalogue.rows()
    index.update(store, progress=False)
    assert index.catalogue.rows() == before


def test_an_index_knows_its_model_after_it_has_built_an_extractor(prepare):
    inferencer, _ = prepare('temde/dual_mean_shapes')
    before = fingerprint(inferencer)
    load = inferencer.pipeline.transforms[0]
    vars(load)['extractor'] = torch.nn.Linear(2, 2)  # as the first image without a store does
    assert fingerprint(inferencer) == before
    load.views += 1
    assert fingerprint(inferencer) != before


def test_an_index_knows_the_weights_of_an_extractor_by_their_content(prepare, tmp_path):
    inferencer, _ = prepare('temde/dual_mean_shapes')
    prints = []
    for name, content in (('a', 'one'), ('b', 'one'), ('a', 'two')):
        (tmp_path / name).write_text(content)
        members = ({'arch': 'cnn', 'pretrained': str(tmp_path / name)},)
        inferencer.pipeline.transforms[0].extractor_config = {'members': members}
        prints.append(fingerprint(inferencer))
    assert prints[0] == prints[1] != prints[2]


def test_an_index_knows_its_model_in_whatever_order_a_config_has_its_keys(prepare, tmp_path):
    inferencer, store = prepare('temde/dual_mean_shapes')
    load = inferencer.pipeline.transforms[0]
    load.extractor_config = {'type': 'GridExtractor', 'members': [{'b': 1, 'a': 2}]}
    index = ImageIndex(tmp_path / 'index', inferencer)
    index.prepare(store, None, None, {})
    manifest = read_manifest(index.folder)
    unsorted = fingerprint(inferencer, is_sorted=False)
    load.extractor_config = {'members': [{'a': 2, 'b': 1}], 'type': 'GridExtractor'}  # of a run
    ImageIndex(index.folder, inferencer)
    write_json(index.folder / MANIFEST, manifest | {'fingerprint': unsorted})  # earlier versions'
    with pytest.raises(ValueError, match='was made with'):
        ImageIndex(index.folder, inferencer)
    load.extractor_config = {'type': 'GridExtractor', 'members': [{'b': 1, 'a': 2}]}
    ImageIndex(index.folder, inferencer)
    load.extractor_config['members'][0]['a'] = 3
    with pytest.raises(ValueError, match='was made with'):
        ImageIndex(index.folder, inferencer)


def test_an_index_knows_how_its_images_are_normalised(prepare, tmp_path):
    inferencer, source = prepare('emkum/tte_post_shapes')
    index = ImageIndex(tmp_path / 'index', inferencer)
    index.prepare(source, None, None, {})
    manifest = read_manifest(index.folder)
    write_json(index.folder / MANIFEST, manifest | {'fingerprint': index.fingerprint[:16]})
    for _ in range(2):  # one of an earlier version, without the normalisation, stays valid
        ImageIndex(index.folder, inferencer)
        index._write_manifest(None, source, 'float16', {})
    inferencer.model.data_preprocessor.std *= 2
    with pytest.raises(ValueError, match='was made with'):
        ImageIndex(index.folder, inferencer)


OTHER = 'given now is .*, with the same weights and another vector of the same {}: give the'


def test_an_index_knows_a_pooling_that_has_no_weights(prepare, tmp_path):
    inferencer, store = prepare('temde/dual_mean_shapes')
    ImageIndex(tmp_path / 'index', inferencer).update(store, progress=False)
    other, _ = prepare('temde/dual_max_shapes')
    assert fingerprint(other) == fingerprint(inferencer)
    with pytest.raises(ValueError, match=OTHER.format('text')):
        ImageIndex(tmp_path / 'index', other)
    (tmp_path / 'index' / PROBES).unlink()
    ImageIndex(tmp_path / 'index', other)  # made by an earlier version: nothing says it
    ImageIndex(tmp_path / 'index', inferencer).update(store, progress=False)
    with pytest.raises(ValueError, match=OTHER.format('text')):
        ImageIndex(tmp_path / 'index', other)


def test_images_of_an_image_encoder_that_computes_something_else_are_not_added(prepare, tmp_path):
    inferencer, source = prepare('emkum/tte_post_shapes')
    index = ImageIndex(tmp_path / 'index', inferencer)
    index.update(source, progress=False)
    activations = [
        (layer, name)
        for layer in inferencer.model.image_encoder.modules()
        for name, child in layer.named_children()
        if isinstance(child, torch.nn.GELU)
    ]
    for layer, name in activations:
        setattr(layer, name, torch.nn.Tanh())
    assert activations
    with pytest.raises(ValueError, match=OTHER.format('image')):
        ImageIndex(index.folder, inferencer).update(source, progress=False)


def test_emkum_searches_images_and_takes_captions(prepare, tmp_path):
    inferencer, source = prepare('emkum/tte_post_shapes')
    index = ImageIndex(tmp_path / 'index', inferencer)
    index.update(source, dtype='float32', progress=False)
    images = index.catalogue.images(index.catalogue.ids())
    scores = inferencer.similarity([image.path for image in images], TEXTS)
    for column, hits in enumerate(index.search([Query(text) for text in TEXTS], len(images))):
        expected = scores[:, column].sort(descending=True).values
        np.testing.assert_allclose([hit.score for hit in hits], expected, atol=1e-5)
    captions = index.captions(images[3].path, TEXTS)
    order = scores[3].argsort(descending=True).tolist()
    assert [text for text, _ in captions] == [TEXTS[row] for row in order]
    with pytest.raises(ValueError, match='EmkumModel has no ITM head, .* no --rerank: it has'):
        index.search([Query('a ring')], rerank=2)


def test_a_model_without_vectors_and_a_store_for_images_are_sentences(
    prepare, tmp_path, monkeypatch
):
    inferencer, store = prepare('temde/saf_temde_shapes')
    with pytest.raises(ValueError, match='ImageTextMatcher compares tokens and gives no vectors'):
        ImageIndex(tmp_path / 'index', inferencer)
    inferencer, _ = prepare('emkum/none_shapes')
    with pytest.raises(ValueError, match='is a region store, and the model takes images'):
        ImageIndex(tmp_path / 'index', inferencer).update(store, progress=False)
    inferencer, _ = prepare('temde/dual_mean_shapes')
    index = ImageIndex(tmp_path / 'regions', inferencer)
    index.update(store, progress=False)
    (image,) = index.catalogue.images([0])
    with pytest.raises(OSError, match='a region store has no images'):
        image.entry.read()
    with pytest.raises(ValueError, match='ImageTextMatcher has no ITM head, so there is no match'):
        index.search([Query('a ring')], rerank=2)
    # ACE-RPE on regions has one.
    monkeypatch.setattr(type(inferencer.model), 'matching_head', torch.nn.Identity(), raising=False)
    with pytest.raises(ValueError, match='store is a region store and has no images: search with'):
        index.search([Query('a ring')], rerank=2)
    (tmp_path / 'regions/vectors.f16').write_bytes(b'')
    with pytest.raises(FileError, match='shorter than the catalogue says'):
        ImageIndex(tmp_path / 'regions', inferencer).search([Query('a ring')])


@pytest.mark.parametrize('pooling', ['temde', 'max'])
def test_the_union_of_texts_is_pooled_as_one_set(prepare, pooling):
    inferencer, _ = prepare(f'temde/dual_{pooling}_shapes')
    queries = [Query.parse(f'{TEXTS[0]} and also {TEXTS[1]}'), Query.parse(TEXTS[2])]
    both, alone = query_vectors(inferencer, queries)
    np.testing.assert_allclose(alone, inferencer.encode_texts(TEXTS[2:]).embedding[0], atol=1e-6)
    similarity = inferencer.model.similarity
    pooled = 0
    for text in TEXTS[:2]:
        words, mask, *_ = inferencer.encode_texts([text]).tokens
        with torch.no_grad():
            if pooling == 'temde':  # the sketch of a union is the sum of the sketches
                pooled = pooled + similarity.text_pooling.sketch(words, mask)[0]
            else:
                largest = words[0][mask[0]].max(0).values
                pooled = largest if text == TEXTS[0] else torch.maximum(pooled, largest)
    if pooling == 'temde':
        pooled = (pooled / pooled.norm(dim=-1, keepdim=True).clamp(min=1e-12)).flatten()
    projected = similarity.text_proj(pooled[None])[0].detach()
    np.testing.assert_allclose(both, projected / projected.norm(), atol=1e-5)


def test_the_union_of_texts_is_a_sum_without_a_pooling(prepare):
    inferencer, _ = prepare('emkum/tte_post_shapes')
    (both,) = query_vectors(inferencer, [Query.parse(' and also '.join(TEXTS))])
    total = inferencer.encode_texts(TEXTS).embedding.sum(0)
    np.testing.assert_allclose(both, total / total.norm(), atol=1e-6)
