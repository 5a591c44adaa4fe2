"""Entailment and reasoning from their configs: fine-tuned, tested, resumed from pre-training."""

import csv
import json
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from runs import load, train

from xmodal.engine.launch import build_runner
from xmodal.registry import DATASETS, METRICS, MODELS

TASKS = ['snli_ve', 'nlvr2']


@pytest.mark.parametrize('task', TASKS)
def test_a_pre_trained_model_is_fine_tuned_and_tested_by_its_config(
    shrink, trained, tmp_path, task
):
    file = tmp_path / 'predictions'
    config = shrink(f'configs/acerpe/{task}_shapes.py')
    config.train_cfg.max_epochs = 1
    config.work_dir = str(tmp_path / 'fine')
    config.load_from = str(trained)
    config.test_evaluator.save_predictions = str(file)
    runner = train(config)
    assert list(Path(config.work_dir).glob('best_accuracy_epoch_*.pth'))
    metrics = runner.test()
    assert 0 <= metrics['accuracy'] <= 100
    count = len(runner.test_dataloader.dataset)
    if task == 'snli_ve':
        assert len(json.loads(file.read_text())) == count
    else:
        assert 0 <= metrics['consistency'] <= metrics['accuracy']
        with open(file) as lines:
            assert len(list(csv.reader(lines))) == count


def test_training_starts_from_the_pre_trained_weights(shrink, trained, tmp_path):
    config = shrink('configs/acerpe/nlvr2_shapes.py')
    config.model.momentum = 0.9
    config.load_from = str(trained)
    config.work_dir = str(tmp_path / 'fine')
    config.experiment_name = 'starts'
    runner = build_runner(config)
    runner.load_or_resume()
    state = load(config.load_from)['state_dict']
    for prefix, module in (
        ('backbone.', runner.model.backbone),
        ('teacher.module.backbone.', runner.model.teacher.module['backbone']),
    ):
        weights = {prefix + name: value for name, value in module.state_dict().items()}
        assert all(torch.equal(value, state[name]) for name, value in weights.items())


@pytest.mark.parametrize('task', [*TASKS, 'nlvr2_ta'])
def test_the_config_of_the_benchmark_names_what_exists(task):
    config = Config.fromfile(f'configs/acerpe/{task}.py')
    assert MODELS.get(config.model.type) and DATASETS.get(config.train_dataloader.dataset.type)
    assert 'heads' not in config.model and 'queue_length' not in config.model
    side = 256 if task == 'nlvr2_ta' else 384
    assert config.model.backbone.image_encoder.image_size == side
    assert config.model.backbone.position.type == 'AnchorRelativePosition'
    if task != 'nlvr2_ta':
        assert METRICS.get(config.test_evaluator.type)
