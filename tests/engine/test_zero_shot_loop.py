"""Zero-shot classification, and composite loops."""

import json
import random
from types import SimpleNamespace

import pytest
import torch
from mmengine.evaluator import Evaluator
from torch.nn.functional import normalize
from torch.utils.data import DataLoader, Dataset

from xmodal.engine.loops import CompositeEvalLoop, ZeroShotLoop
from xmodal.engine.loops.zero_shot import class_embeddings, read_templates
from xmodal.engine.queries import keep_queries, query_results
from xmodal.errors import ConfigError
from xmodal.evaluation import TaskMetric, ZeroShotMetric
from xmodal.structures import DataSample

NAMES = [f'name{number}' for number in range(7)]
TEMPLATES = [f'{word} {{}}' for word in ('a', 'the', 'one', 'this')]
RUNNER = SimpleNamespace(build_evaluator=Evaluator)


class Images(Dataset):
    """Indices instead of images."""

    class_names = NAMES

    def __len__(self):
        return 11

    def __getitem__(self, index):
        if index >= len(self):
            raise IndexError
        sample = DataSample(metainfo=dict(sample_index=index, image_path=f'{index}.png'))
        sample.label = index % len(NAMES)
        return index, sample


def prepare(batch, training):
    images = torch.tensor([image for image, _ in batch])
    samples = [sample for _, sample in batch]
    return {'inputs': SimpleNamespace(images=images), 'data_samples': samples}


prepare.tokenize = lambda texts: (texts, None)


class Model:
    """Random embeddings, seeded by the text or the index of the image."""

    @staticmethod
    def embedding(seed):
        generator = torch.Generator().manual_seed(random.Random(str(seed)).randrange(2**31))
        return normalize(torch.randn(1, 5, generator=generator))

    def encode_image(self, images):
        return SimpleNamespace(embedding=torch.cat([self.embedding(int(i)) for i in images]))

    def encode_text(self, texts, mask):
        """Not of length 1: each prompt counts as much as another one."""
        vectors = [(1 + len(text) % 3) * self.embedding(text) for text in texts]
        return SimpleNamespace(embedding=torch.cat(vectors))


@pytest.fixture
def model():
    made = Model()
    made.data_preprocessor = prepare
    return made


@pytest.fixture
def loop_config(tmp_path):
    (tmp_path / 'templates.json').write_text(json.dumps(TEMPLATES))
    loader = DataLoader(Images(), batch_size=4, collate_fn=list)
    return dict(
        type='ZeroShotLoop',
        dataloader=loader,
        evaluator=dict(type='ZeroShotMetric'),
        templates=str(tmp_path / 'templates.json'),
    )


def literal_accuracies(templates):
    """Class by class and image by image."""
    classes = []
    for name in NAMES:
        total = sum(Model.embedding(template.format(name)) for template in templates) / len(
            templates
        )
        classes.append(total / total.norm())
    hits = {1: 0, 5: 0}
    for image, sample in Images():
        scores = [float(Model.embedding(image) @ embedding.T) for embedding in classes]
        better = sum(score > scores[sample.label] for score in scores)
        hits = {k: count + (better < k) for k, count in hits.items()}
    return {f'top{k}': 100 * count / 11 for k, count in hits.items()}


def test_the_metrics_are_those_of_a_literal_loop(model, loop_config):
    loop_config.pop('type')
    metrics = ZeroShotLoop(RUNNER, **loop_config).evaluate(model)
    assert metrics == pytest.approx(literal_accuracies(TEMPLATES))
    assert metrics['top5'] >= metrics['top1']


class Images11(ZeroShotMetric):
    """The metric of a plug-in, with a figure of its own."""

    def query_columns(self, records):
        return {'images': [11.0] * len(records)}


def test_a_metric_of_a_plug_in_alone_has_no_table(model, loop_config, capsys):
    loop_config.update(evaluator=[Images11()])
    loop_config.pop('type')
    assert ZeroShotLoop(RUNNER, **loop_config).evaluate(model) == {'images': 11.0}
    assert 'Zero-shot' not in capsys.readouterr().out


def test_the_order_of_the_templates_changes_nothing(model, monkeypatch):
    one = class_embeddings(model, NAMES, TEMPLATES)
    monkeypatch.setattr('xmodal.engine.loops.zero_shot.PROMPTS_AT_ONCE', 3)
    other = class_embeddings(model, NAMES, TEMPLATES[::-1])
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(one.norm(dim=1), torch.ones(len(NAMES)))


def test_prompts_are_cleaned_as_captions_are(model):
    one = class_embeddings(model, ['Tiger-Shark'], ['A photo of a {}.'])
    assert torch.equal(one, class_embeddings(model, ['tiger shark'], ['a photo of a {}']))
    raw = class_embeddings(model, ['Tiger-Shark'], ['A photo of a {}.'], max_words=None)
    torch.testing.assert_close(raw[0], model.embedding('A photo of a Tiger-Shark.')[0])


def test_a_model_without_embeddings_is_refused(model):
    model.encode_text = lambda texts, mask: SimpleNamespace(embeddings=None)
    with pytest.raises(ConfigError, match='ZeroShotLoop compares embeddings, and Model has none'):
        class_embeddings(model, NAMES, TEMPLATES)


def test_with_few_classes_all_are_among_the_five_best():
    metric = ZeroShotMetric()
    sample = dict(sample_index=0, image_path='a.png', label=2, scores=torch.tensor([3.0, 1, 2]))
    metric.process(None, [sample])
    assert metric.evaluate(1) == {'top1': 0.0, 'top5': 100.0}


def test_predictions_are_saved(tmp_path):
    metric = ZeroShotMetric(save_predictions=str(tmp_path / 'predictions.json'))
    scores = torch.tensor([0.0, 5, 1, 4, 2, 3])
    metric.process(None, [dict(sample_index=0, image_path='a.png', label=1, scores=scores)])
    metric.evaluate(1)
    expected = [{'image': 'a.png', 'classes': [1, 3, 5, 4, 2]}]
    assert json.loads((tmp_path / 'predictions.json').read_text()) == expected


def test_scores_that_are_not_finite_are_an_error():
    sample = dict(
        sample_index=0, image_path='a.png', label=0, scores=torch.tensor([1.0, torch.nan])
    )
    with pytest.raises(ValueError, match='scores of a.png are not finite'):
        ZeroShotMetric().process(None, [sample])


@pytest.mark.parametrize('content', [[], ['a photo'], ['{} and {}'], {'a': '{}'}, [3]])
def test_templates_of_another_layout_are_an_error(tmp_path, content):
    (tmp_path / 'templates.json').write_text(json.dumps(content))
    with pytest.raises(ValueError, match='is not a JSON list of sentences with one {} each'):
        read_templates(str(tmp_path / 'templates.json'))


def test_missing_templates_are_an_error():
    with pytest.raises(FileNotFoundError, match='templates=none.json does not exist'):
        read_templates('none.json')


@pytest.mark.parametrize('name', ['photographs', 'shapes'])
def test_the_templates_that_ship_can_be_read(name):
    templates = read_templates(f'configs/_base_/prompts/{name}.json')
    assert len(set(templates)) == len(templates) > 5


# composite loops


class Labels(TaskMetric):
    """Says whether the class that was predicted is the label, and keeps both."""

    def record(self, sample):
        return {name: sample[name] for name in ('label', 'predicted')}

    def query_columns(self, records):
        return {'accuracy': [100.0 * (one['label'] == one['predicted']) for one in records]}


def test_predictions_are_a_part_of_a_composite_loop(model, loop_config):
    def predict(batch):
        for index, sample in batch:
            sample.predicted = 3 if index % 2 else sample.label
        return [sample for _, sample in batch]

    model.test_step = predict
    predictions = dict(
        type='PredictionLoop', dataloader=loop_config['dataloader'], evaluator=[Labels()]
    )
    loops = dict(task=predictions, names=loop_config)
    composite = CompositeEvalLoop(RUNNER, None, {}, loops)
    keep_queries(composite)
    # Of the images 0 to 10 the even ones are right, and 3 is, by chance.
    assert composite.evaluate(model)['task/accuracy'] == pytest.approx(700 / 11)
    columns = query_results(composite)['task/samples'].columns
    assert columns['task/accuracy'].tolist() == [100, 0, 100, 100, 100, 0, 100, 0, 100, 0, 100]


def test_a_loop_that_evaluates_no_given_model_is_refused(loop_config):
    loop = dict(loop_config, type='TestLoop')
    del loop['templates']
    runner = SimpleNamespace(build_evaluator=Evaluator, visualizer=SimpleNamespace())
    with pytest.raises(ConfigError, match=r"loops.task is a TestLoop, .*type='PredictionLoop'"):
        CompositeEvalLoop(runner, None, {}, dict(task=loop))


def test_composite_loops_prefix_their_metrics(model, loop_config):
    loops = CompositeEvalLoop(
        runner=RUNNER,
        dataloader={'not': 'built'},
        evaluator={},
        loops=dict(one=loop_config, other=loop_config, none=None),
    )
    expected = literal_accuracies(TEMPLATES)
    metrics = loops.evaluate(model)
    assert metrics == pytest.approx(
        {f'{name}/{key}': value for name in ('one', 'other') for key, value in expected.items()}
    )
    assert loops.dataloader is loop_config['dataloader']


def test_no_loop_at_all_is_an_error():
    with pytest.raises(ValueError, match=r"leaves out all of \['one'\]"):
        CompositeEvalLoop(runner=None, dataloader={}, evaluator={}, loops=dict(one=None))
