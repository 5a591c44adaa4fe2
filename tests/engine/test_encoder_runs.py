"""The image encoder of the embedded world: trained from its config, and where it is used."""

import torch
from mmengine.config import Config
from runs import load, train

from xmodal.engine.launch import build_runner


def test_pre_training_starts_from_the_encoder_that_its_config_trained(
    tiny_config, tiny_world, tmp_path
):
    size = dict(tiny_config.model.backbone.image_encoder)
    config = Config.fromfile('configs/acerpe/encoder_shapes.py')
    config.model.image_encoder.update(size)
    config.model.data_preprocessor.tokenizer.pretrained = str(tiny_world / 'vocab.txt')
    config.train_dataloader.update(global_batch_size=16, num_workers=0, persistent_workers=False)
    config.train_dataloader.dataset.data_root = str(tiny_world)
    config.train_dataloader.dataset.pipeline[1].update(size=16, shift=2)
    config.work_dir = str(tmp_path / 'encoder')
    trained = train(config, **{'train_cfg.max_epochs': 1})

    file = f'{trained.work_dir}/epoch_1.pth'
    tiny_config.model.backbone.image_encoder.pretrained = file
    tiny_config.experiment_name = 'starts from the encoder'
    runner = build_runner(tiny_config)
    runner._init_model_weights()
    state = load(file)['state_dict']
    for name, value in runner.model.backbone.image_encoder.state_dict().items():
        assert torch.equal(value, state[f'image_encoder.{name}']), name


def test_the_config_of_the_pre_training_names_its_checkpoint():
    encoder = Config.fromfile('configs/acerpe/encoder_shapes.py')
    pretraining = Config.fromfile('configs/acerpe/pretrain_shapes.py')
    trained, used = encoder.model.image_encoder, pretraining.model.backbone.image_encoder
    last = encoder.train_cfg.max_epochs
    assert used.pop('pretrained') == f'work_dirs/encoder_shapes/epoch_{last}.pth'
    assert trained == used
