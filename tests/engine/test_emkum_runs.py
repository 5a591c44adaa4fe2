"""EMKUM's configs, trained and tested small."""

import json
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from runs import assert_same_end, call_at, stop, train

from xmodal.datasets.shapes.class_folders import write_class_folders
from xmodal.engine.launch import build_runner
from xmodal.registry import MODELS

VARIANTS = ('none', 'tte_pre', 'tte_post_noscale', 'tte_post')


@pytest.fixture(scope='module')
def classes(tmp_path_factory):
    """The embedded world's classes with one image each, and their place in a config."""
    folder = tmp_path_factory.mktemp('classes')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('xmodal.datasets.shapes.class_folders.IMAGES_PER_CLASS', 1)
        write_class_folders(folder, seed=0, size=32)
    return dict(data_root=f'{folder}/images', class_names=f'{folder}/class_names.json')


@pytest.fixture
def shrunk(tiny_world, classes, tmp_path):
    """Loads a variant on the embedded world, with a model of 32 dimensions and the tiny world."""

    def load(variant='tte_post'):
        config = Config.fromfile(f'configs/emkum/{variant}_shapes.py')
        model = config.model
        small = dict(
            image_size=32, patch_size=8, embed_dim=32, num_heads=2, depth=1, pretrained=False
        )
        model.image_encoder.update(small)
        model.teacher.encoder.update(small)
        model.text_encoder.config.update(
            hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
        )
        model.shared_block.update(num_heads=2, feedforward_dims=32)
        model.data_preprocessor.tokenizer.pretrained = str(tiny_world / 'vocab.txt')
        for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
            config[name].dataset.data_root = str(tiny_world)
            config[name].update(num_workers=0, persistent_workers=False)
        config.train_dataloader.global_batch_size = 8
        config.train_dataloader.dataset.pipeline[1].transforms[0].size = 32
        config.test_cfg.loops.zero_shot.dataloader.num_workers = 0
        config.test_cfg.loops.zero_shot.dataloader.dataset.update(classes)
        config.train_cfg.update(max_epochs=2, val_interval=100)
        config.work_dir = str(tmp_path / variant)
        return config

    return load


@pytest.mark.parametrize('variant', VARIANTS)
def test_a_variant_trains_and_is_tested(shrunk, variant):
    runner = train(shrunk(variant))
    metrics = runner.test()
    assert 0 <= metrics['zero_shot/top1'] <= metrics['zero_shot/top5'] <= 100
    assert metrics['retrieval/mean_recall'] > 0
    file = Path(runner.work_dir, 'token_type_scale.json')
    assert file.exists() == (variant != 'none')
    if file.exists():
        records = json.loads(file.read_text())
        assert [record['when'] for record in records] == ['start', 'epoch 1', 'epoch 2', 'end']
        statistics = records[0]['scales']['token_type']
        assert statistics['share_image'] > 0 and statistics['share_text'] > 0
        assert ('participation' in statistics) == (variant == 'tte_post')


@pytest.mark.parametrize('variant', VARIANTS)
def test_a_variant_trains_on_grid_features_above_frozen_encoders(grid_config, classes, variant):
    config = grid_config(f'configs/emkum/{variant}_flickr8k.py')
    config.model.image_encoder.embed_dims = 32
    config.model.shared_block.update(num_heads=2, feedforward_dims=32)
    zero_shot = config.test_cfg.loops.zero_shot.dataloader
    zero_shot.num_workers = 0
    zero_shot.dataset.update(classes)
    zero_shot.dataset.pipeline[0] = config.test_dataloader.dataset.pipeline[0]
    runner = train(config)
    assert not any(x.requires_grad for x in runner.model.text_encoder.parameters())
    file = Path(runner.work_dir, 'token_type_scale.json')
    assert file.exists() == (variant != 'none')
    if file.exists():
        records = [record['scales']['token_type'] for record in json.loads(file.read_text())]
        for share in ('share_image', 'share_text'):
            assert records[0][share] != records[-1][share] > 0, 'the types do not learn'
    metrics = runner.test()
    assert 0 <= metrics['zero_shot/top1'] <= metrics['zero_shot/top5'] <= 100
    assert metrics['retrieval/mean_recall'] > 0


def test_in_bfloat16_it_trains_too(shrunk):
    config = shrunk()
    config.optim_wrapper.dtype = 'bfloat16'
    runner = train(config)
    gamma = runner.model.token_type.gamma
    assert gamma.dtype == torch.float32 and (gamma - 1e-5).abs().max() > 1e-6
    assert runner.optim_wrapper.skipped == 0


def test_a_resumed_run_ends_as_the_whole_one(shrunk):
    config = shrunk()
    config.default_hooks.checkpoint.max_keep_ckpts = -1
    whole = train(config, work_dir=f'{config.work_dir}/whole')
    work_dir = f'{config.work_dir}/cut'
    with pytest.raises(KeyboardInterrupt):
        train(config, work_dir=work_dir, custom_hooks=[*config.custom_hooks, call_at(5, stop)])
    resumed = train(config, work_dir=work_dir, resume=True)
    assert_same_end(*(f'{runner.work_dir}/epoch_2.pth' for runner in (whole, resumed)))
    records = json.loads(Path(work_dir, 'token_type_scale.json').read_text())
    assert [record['when'] for record in records] == ['start', 'epoch 1', 'epoch 2', 'end']


def test_the_fusion_models_config_with_types_trains(shrink):
    config = shrink('configs/acerpe/pretrain_shapes_tte.py')
    config.model.heads.mim.update(block=8, source='fusion')
    config.train_cfg.update(max_epochs=1, val_interval=100)
    config.custom_hooks[0].epochs = {}
    runner = train(config)
    records = json.loads(Path(runner.work_dir, 'token_type_scale.json').read_text())
    assert list(records[-1]['scales']) == ['backbone.token_type']


def test_a_fusion_model_classifies_without_training_for_it(shrink, classes):
    config = shrink('configs/acerpe/zero_shot_shapes.py')
    config.test_cfg.dataloader.num_workers = 0
    config.test_cfg.dataloader.dataset.update(classes)
    config.experiment_name = 'zero-shot'
    metrics = build_runner(config).test()
    assert set(metrics) == {'top1', 'top5'}


@pytest.mark.parametrize('variant', VARIANTS)
def test_the_published_size_has_132_million_parameters(variant, tiny_world):
    config = Config.fromfile(f'configs/emkum/{variant}_coco_cc.py').model
    config.data_preprocessor.tokenizer = dict(pretrained=str(tiny_world / 'vocab.txt'))
    config.text_encoder.config = dict(vocab_size=50265)
    config.teacher = None
    with torch.device('meta'):
        sizes = {name: p.numel() for name, p in MODELS.build(config).named_parameters()}
    types = sum(size for name, size in sizes.items() if name.startswith('token_type'))
    assert types == {'none': 0, 'tte_post': 1536 + 768}.get(variant, 1536)
    head = 2 * 768 + 768 * 768 + 768  # of the distillation, left out with the teacher
    assert 131e6 < sum(sizes.values()) + head < 134e6
