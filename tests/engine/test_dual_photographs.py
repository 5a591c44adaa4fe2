"""The dual encoder on photographs, from its config; made-up images and small random encoders."""

import json
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from mmengine.config import Config
from PIL import Image
from torchvision.transforms import v2

from tools.dataset_converters import extract_regions
from xmodal.ablation import read_table
from xmodal.apis import Inferencer
from xmodal.engine.launch import build_runner
from xmodal.registry import MODELS
from xmodal.structures import Regions

WORDS = ('red', 'blue', 'green')


@pytest.fixture
def photographs(tmp_path):
    """A folder like Flickr8k's with images of three colours, whose captions name them."""
    folder = tmp_path / 'data/flickr8k'
    (folder / 'images').mkdir(parents=True)
    rng = np.random.default_rng(0)
    records = []
    for i in range(24):
        pixels = rng.integers(0, 40, (48, 64, 3), dtype=np.uint8)
        pixels[..., (0, 2, 1)[i % 3]] += 200
        Image.fromarray(pixels).save(folder / f'images/{i}.png')
        records.append({'image': f'flickr8k/images/{i}.png', 'caption': [f'a {WORDS[i % 3]} disc']})
    (folder / 'albef').mkdir()
    (folder / 'albef/train.json').write_text(json.dumps(records))
    (folder / 'albef/dev.json').write_text(json.dumps(records[:3]))
    return folder


@pytest.fixture
def read_config(photographs, tiny_world, tmp_path):
    """Gives a config on Flickr8k, or that of a file, small random encoders and made-up images."""

    def read(config):
        config = config if isinstance(config, Config) else Config.fromfile(config)
        config.model.data_preprocessor.tokenizer.pretrained = str(tiny_world / 'vocab.txt')
        encoders = config.model.get('backbone', config.model)
        encoders.text_encoder.update(
            pretrained=None,
            config=dict(
                vocab_size=128, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                intermediate_size=32,
            ),
        )  # fmt: skip
        encoders.image_encoder.feature_dims = 64
        names = ('train_dataloader', 'val_dataloader', 'test_dataloader')
        for loader in filter(None, map(config.get, names)):
            loader.dataset.data_root = str(tmp_path / loader.dataset.data_root)
            loader.update(num_workers=0, persistent_workers=False)
            load = loader.dataset.pipeline[0]
            load.store = str(photographs / 'store')
            load.pop('views', None)
            if 'members' in load.get('extractor', {}):
                load.extractor.update(
                    image_size=64, members=[dict(arch='test_convnext', pretrained=False)]
                )
            elif 'extractor' in load:
                load.extractor.update(arch='test_convnext', image_size=64, pretrained=False)
        config.train_dataloader.global_batch_size = 6
        config.default_hooks.checkpoint.interval = 100  # beside the last one
        config.work_dir = str(tmp_path / 'run')
        return config

    return read


@pytest.fixture
def config(read_config):
    """The config of a dual encoder."""
    return read_config('configs/temde/dual_flickr8k.py')


def extract(file, images, monkeypatch):
    """Computes the features of all images."""
    monkeypatch.setattr(sys, 'argv', ['extract', str(file), str(images), '--workers', '0'])
    extract_regions.main()


def test_features_are_computed_once_and_texts_then_find_images(config, tmp_path, monkeypatch):
    file = tmp_path / 'config.py'
    config.dump(file)
    extract(file, tmp_path / 'data/flickr8k/images', monkeypatch)
    # A new extractor has other random weights: all images have to come from the store.
    monkeypatch.setattr('xmodal.datasets.transforms.regions.LoadRegions._extract', None)
    config.test_cfg.save_rankings = str(tmp_path / 'rankings.json')
    runner = build_runner(config)
    runner.train()
    metrics = runner.test()
    assert metrics['i2t/R@1'] == metrics['t2i/R@1'] == 100
    rankings = json.loads((tmp_path / 'rankings.json').read_text())
    photographs = [tmp_path / f'data/flickr8k/images/{i}.png' for i in range(3)]
    assert list(map(Path, rankings['images'])) == photographs  # which the report shows


SGRAF = dict(type='SGRAFSimilarity', reasoning=dict(type='SAF'), dim=16)


@pytest.mark.parametrize('similarity', [None, SGRAF], ids=['dual', 'saf'])
@torch.no_grad()
def test_photographs_of_a_user_are_compared_with_texts(config, similarity, tmp_path):
    """Without any store; the reference is the extractor and the model, called one by one."""
    folder = tmp_path / 'data/flickr8k'
    if similarity:
        config.model.similarity = similarity
        config.model.image_encoder.embed_dims = 32
    torch.save(timm.create_model('test_convnext').state_dict(), tmp_path / 'convnext.pth')
    load = config.test_dataloader.dataset.pipeline[0]
    load.extractor.pretrained = str(tmp_path / 'convnext.pth')
    extractor = MODELS.build(load.extractor).eval()
    model = MODELS.build(config.model).eval()
    torch.save(model.state_dict(), tmp_path / 'weights.pth')
    inferencer = Inferencer(config, tmp_path / 'weights.pth')

    files = sorted((folder / 'images').glob('*.png'))[:3]
    texts = ['a red disc', 'Two GREEN discs.']
    pixels = [np.asarray(Image.open(file)) for file in files]
    images = torch.stack([torch.tensor(p).permute(2, 0, 1) for p in pixels])
    resized = v2.functional.resize(images, [64, 64], v2.InterpolationMode.BICUBIC, antialias=True)
    features, _ = extractor(resized)
    regions = Regions(features, torch.ones(features.shape[:2], dtype=torch.bool))
    ids, mask = model.data_preprocessor.tokenize(['a red disc', 'two green discs'])
    logits = model.similarity(model.encode_image(regions), model.encode_text(ids, mask))
    expected = logits.sigmoid() if similarity else logits

    for given in (files, [file.read_bytes() for file in files], pixels):
        found = inferencer.similarity(given, texts)
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    vectors = inferencer.encode_images(files).embedding, inferencer.encode_texts(texts).embedding
    if similarity:
        assert vectors == (None, None)
    else:
        torch.testing.assert_close(vectors[0] @ vectors[1].T, expected, atol=1e-4, rtol=1e-4)
    assert inferencer.similarity([], texts).shape == (0, 2)
    assert inferencer.similarity(files, []).shape == (3, 0)


# The trainings of T-EMDE's tables on photographs.
ROWS = [
    (table, row.name, stage.name)
    for table in ('photographs', 'dual')
    for found in [read_table(f'configs/temde/ablations/{table}.py', 'flickr8k')]
    for row in found.rows
    for stage in filter(lambda stage: stage.trains, found.stages.values())
]


@pytest.mark.parametrize('table, row, stage', ROWS)
def test_each_row_of_the_tables_finds_photographs(
    table, row, stage, read_config, tmp_path, monkeypatch
):
    found = read_table(f'configs/temde/ablations/{table}.py', 'flickr8k', [row])
    config = read_config(deepcopy(found.rows[0].config(found.stages[stage])))
    config.train_cfg.max_epochs = 10  # of four steps
    config.optim_wrapper.optimizer.lr = 5e-3
    module = config.model.similarity.get('global_pooling') or {}
    if 'regions' in module:
        module.regions = 4  # cells of the small encoder
    config.dump(tmp_path / 'config.py')
    extract(tmp_path / 'config.py', tmp_path / 'data/flickr8k/images', monkeypatch)
    runner = build_runner(config)
    bert = runner.model.text_encoder.bert
    before = {name: value.clone() for name, value in bert.state_dict().items()}
    runner.train()
    assert runner.test()['mean_recall'] == 100
    assert all(value.equal(before[name]) for name, value in bert.state_dict().items())


def test_a_fusion_encoder_is_trained_above_vectors_that_stay(read_config, tmp_path, monkeypatch):
    config = read_config('configs/acerpe/pretrain_flickr8k_grid.py')
    config.model.backbone.fusion.update(embed_dims=32, num_heads=2, feedforward_dims=32)
    config.dump(tmp_path / 'config.py')
    extract(tmp_path / 'config.py', tmp_path / 'data/flickr8k/images', monkeypatch)
    runner = build_runner(config)
    runner.train()
    assert runner.test()['mean_recall'] == 100
    vectors = runner.model.state_dict()

    config = read_config('configs/acerpe/retrieval_flickr8k_grid.py')
    config.model.backbone.fusion.update(embed_dims=32, num_heads=2, feedforward_dims=32)
    config.work_dir = str(tmp_path / 'fusion')
    config.load_from = str(tmp_path / 'run/epoch_3.pth')
    config.train_cfg.max_epochs = 20  # of four steps
    config.optim_wrapper.optimizer.lr = 5e-3
    runner = build_runner(config)
    runner.train()
    metrics = runner.test()
    assert metrics['first_stage/mean_recall'] == metrics['mean_recall'] == 100
    trained = runner.model.state_dict()
    for name, value in vectors.items():
        is_vector = name.startswith(('backbone.image_proj', 'backbone.text_proj', 'heads.itc'))
        is_fusion = name.endswith('weight') and name.startswith('backbone.fusion')
        assert value.equal(trained[name]) or not is_vector, name
        assert not value.equal(trained[name]) or not is_fusion, name


def test_entailment_starts_from_the_vectors_of_the_pre_training(read_config, tmp_path, monkeypatch):
    config = read_config('configs/acerpe/pretrain_flickr8k_grid.py')
    config.dump(tmp_path / 'config.py')
    extract(tmp_path / 'config.py', tmp_path / 'data/flickr8k/images', monkeypatch)
    folder = tmp_path / 'data/flickr8k/snli_ve_mini'
    folder.mkdir()
    said = [('a red disc', 'entailment'), ('a blue bar', 'neutral'), ('a star', 'contradiction')]
    pairs = [
        dict(image=f'{i}.png', Flickr30K_ID=str(i), sentence2=text, gold_label=label)
        for i, (text, label) in enumerate(said * 8)
    ]
    for split in ('train', 'dev'):
        (folder / f'{split}.jsonl').write_text('\n'.join(map(json.dumps, pairs)))

    start = MODELS.build(config.model).state_dict()
    torch.save({'state_dict': start}, tmp_path / 'start.pth')
    config = read_config('configs/acerpe/snli_ve_flickr8k_grid.py')
    config.load_from = str(tmp_path / 'start.pth')
    config.train_cfg.max_epochs = 30  # of four steps
    config.optim_wrapper.optimizer.lr = 5e-3
    runner = build_runner(config)
    runner.train()
    trained = runner.model.state_dict()
    image_proj = [name for name in trained if name.startswith('backbone.image_proj')]
    assert all(trained[name].equal(start[name]) for name in image_proj)
    text_encoder = [name for name in trained if name.startswith('backbone.text_encoder')]
    assert any(not trained[name].equal(start[name]) for name in text_encoder)
    assert runner.test()['accuracy'] > 90
