"""Answering from its configs: fine-tuned from pre-training, tested, submitted."""

import json

import pytest
import torch
from mmengine.config import Config
from runs import load, train

from xmodal.datasets.shapes.questions import answer_list
from xmodal.engine.launch import build_runner
from xmodal.registry import DATASETS, METRICS, MODELS


@pytest.fixture
def tiny_vqa(shrink, tiny_world, tmp_path):
    """The embedded fine-tuning, tiny."""
    config = shrink('configs/acerpe/vqa_shapes.py')
    config.model.answer_list = str(tiny_world / 'vqa/answer_list.json')
    config.train_cfg.max_epochs = 1
    config.work_dir = str(tmp_path / 'fine')
    return config


def test_a_pre_trained_model_is_fine_tuned_tested_and_submits(
    trained, tiny_vqa, tiny_world, tmp_path
):
    tiny_vqa.load_from = str(trained)
    file = tmp_path / 'answers.json'
    tiny_vqa.test_evaluator.save_predictions = str(file)
    metrics = train(tiny_vqa).test()
    assert set(metrics) == {'vqa/overall', 'vqa/yes/no', 'vqa/number', 'vqa/other'}
    submission = json.loads(file.read_text())
    asked = json.loads((tiny_world / 'vqa/questions_test.json').read_text())['questions']
    assert [item['question_id'] for item in submission] == [q['question_id'] for q in asked]
    assert {item['answer'] for item in submission} <= set(answer_list())


def test_a_pre_training_is_no_tested_vqa_model(trained, tiny_vqa):
    tiny_vqa.load_from = str(trained)
    with pytest.raises(ValueError, match='has no weights of decoder, so it is no AlbefVQA'):
        build_runner(tiny_vqa).test()


def test_training_starts_from_the_pre_trained_weights(trained, tiny_vqa):
    tiny_vqa.load_from = str(trained)
    tiny_vqa.experiment_name = 'starts'
    runner = build_runner(tiny_vqa)
    runner.load_or_resume()
    state = load(tiny_vqa.load_from)['state_dict']
    model = runner.model.state_dict()
    for ours, theirs in (
        ('backbone.image_encoder.vit.cls_token', 'backbone.image_encoder.vit.cls_token'),
        ('decoder.layers.0.self_norm.weight', 'backbone.fusion.layers.0.self_norm.weight'),
        ('decoder.words.transform.weight', 'heads.mlm.transform.weight'),
    ):
        assert torch.equal(model[ours], state[theirs]), ours


@pytest.mark.parametrize('name', ['vqa_v2', 'vqa_v2_val'])
def test_the_config_of_the_benchmark_names_what_exists(name):
    config = Config.fromfile(f'configs/acerpe/{name}.py')
    assert MODELS.get(config.model.type) and METRICS.get(config.test_evaluator.type)
    assert 'heads' not in config.model and 'queue_length' not in config.model
    assert config.model.backbone.image_encoder.image_size == 384
    vqa, genome = config.train_dataloader.dataset.datasets
    assert DATASETS.get(vqa.type) and DATASETS.get(genome.type)
    tested = config.test_dataloader.dataset
    trained = vqa.ann_file if isinstance(vqa.ann_file, list) else [vqa.ann_file]
    assert tested.ann_file not in trained
    assert ('answer_file' in tested) == (name == 'vqa_v2_val')
