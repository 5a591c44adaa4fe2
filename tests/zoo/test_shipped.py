"""The model of the package: whole, small, and as good as it says; nothing is trained."""

import hashlib
import json

import cv2
import pytest
import torch

from xmodal.apis import Inferencer
from xmodal.datasets.shapes import WorldSpec, build_world
from xmodal.zoo.folder import find_folder
from xmodal.zoo.metafile import find_entry


@pytest.fixture(scope='module')
def scenes(tmp_path_factory):
    """A hundred scenes of another seed than the model's own world, with their captions."""
    folder = tmp_path_factory.mktemp('shapes') / 'world'
    build_world(folder, WorldSpec(train=1, val=1, test=100, size=96, seed=7), workers=1)
    records = json.loads((folder / 'albef' / 'test.json').read_text())
    return [str(folder / r['image']) for r in records], [r['caption'] for r in records]


def test_it_is_the_file_of_the_metafile():
    entry, folder = find_entry('acerpe-shapes'), find_folder('acerpe-shapes')
    file = folder / 'model.safetensors'
    assert hashlib.sha256(file.read_bytes()).hexdigest() == entry.sha256
    assert file.stat().st_size == entry.size < 3e6
    card = (folder / 'README.md').read_text()
    name = 'embedded world, ITC, weights of the package'
    (measured,) = [result for result in entry.results if result['Dataset'] == name]
    for name, key in (('TR', 'i2t'), ('IR', 't2i')):
        for k in (1, 5, 10):
            value = measured['Metrics'][f'{name}@{k}']
            assert f'| first_stage/{key}/R@{k} | {value:g} |' in card


def test_it_retrieves_as_well_as_it_says(scenes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # no data, no vocabulary, no other weights
    images, captions = scenes
    model = Inferencer('acerpe-shapes')
    texts = [text for each in captions for text in each]
    scores = model.similarity(images, texts)
    hits = {1: 0, 5: 0}
    for index, text in enumerate(scores.T):
        image = index // len(captions[0])
        rank = int((text > text[image]).sum())
        for k in hits:
            hits[k] += rank < k
    # Among 100 images it is easier than among 500, where R@1 is 49.8 and R@5 84.8.
    assert hits[1] / len(texts) > 0.6 and hits[5] / len(texts) > 0.9


def test_matching_prefers_the_true_captions(scenes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    images, captions = scenes
    match = Inferencer('acerpe-shapes').match(images[:20], [c[0] for c in captions[:20]])
    wrong = match[~torch.eye(20, dtype=torch.bool)]
    assert match.diagonal().mean() > wrong.mean() + 0.3


def test_it_takes_images_of_any_size_and_empty_lists(scenes):
    model = Inferencer('acerpe-shapes')
    image = cv2.imread(scenes[0][0])[..., ::-1]
    large = cv2.resize(image, (250, 130), interpolation=cv2.INTER_CUBIC)
    vectors = model.encode_images([image, large]).embedding
    assert vectors[0] @ vectors[1] > 0.98
    texts = ['a red ring', 'a blue disc']
    for compute in (model.similarity, model.match):
        assert compute([], texts).shape == (0, 2) and compute([image], []).shape == (1, 0)
    assert model.encode_images([]).embedding.shape[0] == 0
    assert model.heatmap([], []).shape[0] == 0
