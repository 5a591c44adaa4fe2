"""Blind tests: planted models that read one modality alone, and a test of every family."""

import sys
from types import SimpleNamespace

import pytest
import torch
from mmengine.model import BaseDataPreprocessor
from runs import RUN_NUMBERS
from torch.utils.data import DataLoader

from tools import test as test_tool
from xmodal.datasets.collate import stack_images, stack_regions
from xmodal.engine.blind import BlindCollate, blind
from xmodal.engine.launch import build_runner
from xmodal.errors import ConfigError
from xmodal.evaluation import ReasoningMetric
from xmodal.registry import MODELS
from xmodal.structures import DataSample, Regions

MEAN = torch.tensor([120.0, 110.0, 100.0]).view(3, 1, 1)


class Planted:
    """Samples whose label is in the text, in the colour of the image, or in both together."""

    def __init__(self, size=400, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.bits = torch.randint(2, (size, 2), generator=generator).tolist()

    def __len__(self):
        return len(self.bits)

    def __getitem__(self, index):
        of_text, of_image = self.bits[index]
        sample = DataSample(metainfo={'sample_index': index, 'image_path': f'{index}.jpg'})
        sample.text, sample.image_id = ('no', 'yes')[of_text], index
        sample.identifier, sample.group = f'pair-{index}', ''
        return {'inputs': torch.full((3, 4, 4), 200 * of_image).byte(), 'data_samples': sample}


class Numbered(Planted):
    """Images show the index of their sample."""

    def __getitem__(self, index):
        return {**super().__getitem__(index), 'inputs': torch.full((3, 4, 4), index).byte()}


def reads_text(image, text):
    return int(text == 'yes')


def reads_image(image, text):
    return int(image.float().mean() > 150)


def reads_both(image, text):
    return reads_text(image, text) ^ reads_image(image, text)


def accuracy(model, way):
    """Of a model that reads the label perfectly, when it can see."""
    dataset = Planted()
    collate = stack_images if way is None else BlindCollate(stack_images, dataset, way, MEAN)
    batch = collate([dataset[index] for index in range(len(dataset))])
    metric = ReasoningMetric()
    for image, sample in zip(batch['inputs'], batch['data_samples'], strict=True):
        seen = dataset[sample.sample_index]
        sample.label = model(seen['inputs'], seen['data_samples'].text)
        sample.predicted = model(image, sample.text)
    metric.process({}, [sample.to_dict() for sample in batch['data_samples']])
    return metric.evaluate(len(dataset))['accuracy']


@pytest.mark.parametrize('way', [None, *test_tool.WAYS])
@pytest.mark.parametrize('model', [reads_text, reads_image, reads_both])
def test_a_planted_model_falls_to_chance_where_its_modality_is_hidden(model, way):
    hidden = {
        None: set(),
        'text': {reads_text, reads_both},
        'image': {reads_image, reads_both},
        'shuffle': {reads_image, reads_both},
    }
    actual = accuracy(model, way)
    if model in hidden[way]:
        assert actual == pytest.approx(50, abs=10)  # 4 deviations of 400 coins
    else:
        assert actual == 100


def test_a_hidden_image_is_the_mean_colour_and_a_shuffled_one_is_never_its_own():
    dataset = Numbered(size=9)
    batch = [dataset[index] for index in range(9)]
    image = BlindCollate(stack_images, dataset, 'image', MEAN)(batch)['inputs']
    assert image.shape == (9, 3, 4, 4)
    assert (image == MEAN.byte()).all()
    seen = []
    collate = BlindCollate(stack_images, dataset, 'shuffle', MEAN)
    for start in range(0, 9, 4):
        samples = [dataset[index] for index in range(start, min(start + 4, 9))]
        shuffled = collate(samples)
        assert [s.sample_index for s in shuffled['data_samples']] == [
            s['data_samples'].sample_index for s in samples
        ]
        seen += shuffled['inputs'][:, 0, 0, 0].tolist()
    assert sorted(seen) == list(range(9))
    assert all(image != index for index, image in enumerate(seen))


def test_samples_of_one_image_are_refused_to_be_shuffled():
    dataset = Planted(size=3)
    collate = BlindCollate(stack_images, dataset, 'shuffle', MEAN)
    samples = [dataset[0]]
    one = SimpleNamespace(image_id=0, sample_index=0)
    collate.dataset = [{'inputs': None, 'data_samples': one}] * 3
    with pytest.raises(ValueError, match='have the same image'):
        collate(samples)


def test_pixels_of_a_preprocessor_without_a_mean_have_no_colour():
    loop = SimpleNamespace(dataloader=DataLoader(Planted(2), collate_fn=stack_images))
    with pytest.raises(
        ConfigError, match=r'data_preprocessor\.mean, which BaseDataPreprocessor doe'
    ):
        blind(loop, 'image', BaseDataPreprocessor())
    blind(loop, 'shuffle', BaseDataPreprocessor())


def test_hidden_regions_say_nothing_of_their_number_and_place():
    regions = Regions(torch.rand(5, 7), torch.ones(5, dtype=torch.bool), torch.rand(5, 4))
    sample = {'inputs': [regions, regions], 'data_samples': DataSample()}
    hidden = BlindCollate(stack_regions, [sample], 'image', None)([sample])['inputs']
    assert hidden.features.shape == (2, 1, 7)
    assert not hidden.features.any()
    assert hidden.boxes.tolist() == [[[0, 0, 1, 1]]] * 2


CONFIGS = [
    'acerpe/pretrain_shapes',
    'acerpe/vqa_shapes',
    'acerpe/snli_ve_shapes',
    'acerpe/nlvr2_shapes',
    'acerpe/grounding_shapes',
    'lxmert/vqa_shapes',
    'lxmert/nlvr2_shapes',
    'temde/saf_temde_shapes',
    'emkum/tte_post_shapes',
]


@pytest.mark.parametrize('file', CONFIGS)
def test_every_family_is_tested_blind(relocated, tiny_world, tmp_path, file):
    config = relocated(f'configs/{file}.py', tiny_world)
    config.work_dir = str(tmp_path)
    config.experiment_name = f'blind{next(RUN_NUMBERS)}'
    runner = build_runner(config)
    preprocessor = runner.model.data_preprocessor
    loop = runner.build_test_loop(runner._test_loop)
    for way in test_tool.WAYS:
        blind(loop, way, preprocessor)
        for inner in inner_loops(loop):
            loader = inner.dataloader
            shown = next(iter(loader))
            batch = preprocessor(shown, False)['inputs']
            if way == 'text' and hasattr(loader.dataset, 'class_names'):
                assert set(loader.dataset.class_names) == {''}
            elif way == 'text':
                assert len(set(map(tuple, batch.input_ids.tolist()))) == 1
            if way == 'image':
                assert pixels_or_features(batch.images).abs().max() < 0.01
            hidden, loader.collate_fn = loader.collate_fn, loader.collate_fn.collate
            if way == 'shuffle':
                own = next(iter(loader))
                assert [s.text for s in shown['data_samples']] == [
                    s.text for s in own['data_samples']
                ]
                count = len(own['data_samples'])  # of a pair one image may be the same
                rows = [
                    pixels_or_features(x['inputs']).unflatten(0, (count, -1)) for x in (shown, own)
                ]
                for one, two in zip(*rows, strict=True):
                    assert one.shape != two.shape or not one.equal(two)
            assert hidden.way == way


def inner_loops(loop):
    return (
        [x for part in loop.loops.values() for x in inner_loops(part)]
        if hasattr(loop, 'loops')
        else [loop]
    )


def pixels_or_features(images):
    return images.features if isinstance(images, Regions) else images


@torch.no_grad()
def test_the_tool_finds_nothing_by_hidden_images(tiny_config, tmp_path, monkeypatch):
    tiny_config.pop('work_dir')
    tiny_config.dump(tmp_path / 'tiny.py')
    weights = MODELS.build(tiny_config.model).state_dict()
    torch.save({'state_dict': weights, 'meta': {}}, tmp_path / 'weights.pth')
    arguments = [tmp_path / 'tiny.py', tmp_path / 'weights.pth', '--work-dir', tmp_path / 'run']
    arguments += ['--blind', 'image', '--metrics', tmp_path / 'blind.json']
    monkeypatch.setattr(sys, 'argv', ['test.py', *map(str, arguments)])
    test_tool.main()
    assert '"first_stage/t2i/R@1": 0.0' in (tmp_path / 'blind.json').read_text()
    assert (tmp_path / 'blind.queries.npz').is_file()
