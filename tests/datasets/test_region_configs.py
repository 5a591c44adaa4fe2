"""The region datasets of the embedded world's configs, on a tiny world."""

import pytest
from mmengine.config import Config

from xmodal.datasets import stack_regions
from xmodal.datasets.shapes.regions import FEATURE_DIMS, REGIONS
from xmodal.registry import DATASETS, METRICS

FOLDER = 'configs/_base_/datasets'


def build(name, loader, world):
    config = Config.fromfile(f'{FOLDER}/{name}.py')[loader].dataset
    config.data_root = str(world)
    config.pipeline[0].store = str(world / 'regions/store')
    return DATASETS.build(config)


@pytest.mark.parametrize(
    ('name', 'images', 'fields'),
    [
        ('lxmert_pretrain_shapes', 1, {'answers', 'answer_weights'}),
        ('vqa_regions_shapes', 1, {'answers', 'answer_weights'}),
        ('gqa_regions_shapes', 1, {'answers', 'answer_weights'}),
        ('nlvr2_regions_shapes', 2, {'label', 'identifier', 'group'}),
    ],
)
def test_a_training_batch_has_regions_with_boxes_and_labels(tiny_world, name, images, fields):
    dataset = build(name, 'train_dataloader', tiny_world)
    batch = stack_regions([dataset[index] for index in range(4)])
    regions, samples = batch['inputs'], batch['data_samples']
    assert regions.features.shape == (4 * images, REGIONS, FEATURE_DIMS)
    assert regions.boxes.min() >= 0 and regions.boxes.max() <= 1
    assert regions.labels.objects.max() < 8 and regions.labels.attributes.max() < 48
    assert len(samples) == 4 and fields <= set(samples[0].keys())


@pytest.mark.parametrize('loader', ['val_dataloader', 'test_dataloader'])
@pytest.mark.parametrize('name', ['vqa', 'gqa', 'nlvr2'])
def test_test_samples_have_the_fields_that_their_metric_needs(tiny_world, name, loader):
    config = Config.fromfile(f'{FOLDER}/{name}_regions_shapes.py')
    evaluator = config[loader.replace('dataloader', 'evaluator')]
    if 'choices' in evaluator:
        evaluator.choices = str(tiny_world / 'gqa/testdev_choices.json')
    metric, dataset = METRICS.build(evaluator), build(f'{name}_regions_shapes', loader, tiny_world)
    samples = [sample['data_samples'] for sample in dataset]
    for sample in samples:
        answers = sample.get('answers') or sample.get('human_answers')
        sample.predicted = answers[0] if answers else sample.label
    metric.process({}, [sample.to_dict() for sample in samples])
    scores = metric.evaluate(len(dataset))
    assert 0 < next(iter(scores.values())) <= 100
    if name == 'gqa' and loader == 'test_dataloader':
        assert {'gqa/consistency', 'gqa/validity', 'gqa/distribution'} <= set(scores)
