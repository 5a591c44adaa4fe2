"""Results query by query, against the metrics that are computed without them."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from xmodal.engine.queries import keep_queries, query_results
from xmodal.evaluation import (
    EntailmentMetric,
    Gallery,
    GqaMetric,
    GroundingMetric,
    ReasoningMetric,
    RetrievalMetric,
    SoftAnswerMetric,
    VqaMetric,
    ZeroShotMetric,
)
from xmodal.evaluation.queries import figure, queries_file, read_queries, write_queries
from xmodal.evaluation.task import TaskMetric
from xmodal.files import FileError


def evaluated(metrics, samples, size=None):
    """The figures, and the results query by query, of one metric or of several."""
    metrics = metrics if isinstance(metrics, list) else [metrics]
    loop = SimpleNamespace(evaluator=SimpleNamespace(metrics=metrics))
    keep_queries(loop)
    figures = {}
    for metric in metrics:
        metric.process({}, samples)
        figures |= metric.evaluate(size or len(samples))
    return figures, query_results(loop)


def gallery(images=12, seed=0):
    """Random scores in two stages; images have one to three texts."""
    generator = torch.Generator().manual_seed(seed)
    counts = torch.tensor([1 + i % 3 for i in range(images)])
    text_to_image = torch.repeat_interleave(torch.arange(images), counts)
    scores = [torch.randn(images, len(text_to_image), generator=generator) for _ in range(3)]
    return Gallery(scores[0], text_to_image, itc_scores=scores[1], t2i_scores=scores[2])


@pytest.mark.parametrize('folds', [1, 4])
def test_retrieval_ranks_of_both_directions_and_stages(folds):
    scored = gallery()
    metrics, queries = evaluated(RetrievalMetric(folds=folds, prefix='p'), [scored], 1)
    assert set(queries) == {'p/i2t', 'p/t2i', 'p/first_stage/i2t', 'p/first_stage/t2i'}
    for name, value in metrics.items():
        if 'median' not in name and not name.endswith('_std'):
            assert figure(queries, name) == pytest.approx(value), name
    # The rank of text 5 (of image 2) among the images of its fold, counted one by one.
    assert scored.text_to_image[5] == 2
    fold = [image for image in range(12) if image // (12 // folds) == 2 // (12 // folds)]
    column = scored.t2i_scores[:, 5]
    better = [image for image in fold if image != 2 and column[image] >= column[2]]
    results = queries['p/t2i']
    assert results.columns['rank'][5] == 1 + len(better)
    assert results.columns['score'][5] == pytest.approx(column[2].item())
    assert (results.ids[5], results.groups[5]) == ('5', '2')


def labelled(index, predicted, label, **fields):
    return dict(sample_index=index, image_id=index // 2, predicted=predicted, label=label, **fields)


SAMPLES = {
    'entailment': (
        EntailmentMetric,
        [labelled(i, i % 3, (i * i) % 3, pair_id=f'pair{i}') for i in range(7)],
        set(),
    ),
    'reasoning': (
        ReasoningMetric,
        [labelled(i, i % 2, int(i > 2), identifier=f'x-{i}', group=f'g{i // 3}') for i in range(6)],
        {'consistency'},
    ),
    'vqa': (
        VqaMetric,
        [
            dict(
                sample_index=i,
                question_id=i,
                predicted='yes',
                human_answers=['yes'] * i + ['no'] * (10 - i),
                answer_type=('yes/no', 'other')[i % 2],
            )
            for i in range(6)
        ],
        set(),
    ),
    'soft': (
        SoftAnswerMetric,
        [
            dict(
                sample_index=i,
                question_id=i,
                predicted='yes',
                answers=['yes', 'no'][i % 2 :],
                answer_weights=[0.3, 1.0][i % 2 :],
                answer_type='',
            )
            for i in range(5)
        ],
        set(),
    ),
    'gqa': (
        GqaMetric,
        [
            dict(
                sample_index=i,
                question_id=f'q{i}',
                predicted='red',
                answers=['red' if i % 3 else 'blue'],
                gqa=dict(structural=('query', 'verify')[i % 2], semantic='attr', balanced=i != 4),
            )
            for i in range(8)
        ],
        set(),
    ),
    'zero_shot': (
        ZeroShotMetric,
        [
            dict(
                sample_index=i,
                scores=torch.arange(8.0).roll(i),
                label=3,
                image_path=f'{i}.jpg',
            )
            for i in range(8)
        ],
        set(),
    ),
    'grounding': (
        GroundingMetric,
        [
            dict(
                sample_index=i,
                sent_id=i,
                ref_id=i,
                split=('testA', 'testB')[i % 2],
                proposals=[[0, 0, 8, 8], [2 * i, 0, 8, 8]],
                box=[0, 0, 9, 8],
                chosen=1,
                heat=torch.rand(16, 16, generator=torch.Generator().manual_seed(i)),
            )
            for i in range(6)
        ],
        {'testA/chance', 'testB/chance'},
    ),
}


@pytest.mark.parametrize('task', SAMPLES)
def test_the_means_of_the_queries_are_the_metrics(task):
    metric, samples, undetermined = SAMPLES[task]
    metrics, queries = evaluated(metric(), samples[::-1])
    assert {name for name in metrics if figure(queries, name) is None} == undetermined
    for name in metrics.keys() - undetermined:
        assert figure(queries, name) == pytest.approx(metrics[name]), name
    (results,) = queries.values()
    assert len(results.ids) == len(samples)


PROBABILITIES = torch.tensor([0.5, 0.2, 0.3])
ANSWERS = [('no', 0.6), ('yes', 0.4)]


@pytest.mark.parametrize(
    'task, given, expected',
    [
        ('entailment', {'probabilities': PROBABILITIES}, [0.5, 0.2, 0.2, 0.5, 0.2, 0.2, 0.5]),
        ('reasoning', {'probabilities': PROBABILITIES[:2]}, [0.5] * 3 + [0.2] * 3),
        ('vqa', {'top_answers': ANSWERS}, [0.4] * 6),
        ('soft', {'top_answers': ANSWERS}, [0.4] * 5),
        ('gqa', {'top_answers': [('red', 0.9), ('red', 0.1)]}, [0.9] * 8),
    ],
)
def test_scores_are_the_probabilities_that_samples_have_and_no_figures(task, given, expected):
    metric, samples, _ = SAMPLES[task]
    without, plain = evaluated(metric(), samples)
    complete = [sample | given for sample in samples]
    # As where a sampler fills up the last batch: some samples are there twice.
    figures, queries = evaluated(metric(), [*complete, *complete[:2]], len(samples))
    ((kind, results),) = queries.items()
    assert figures == without
    assert results.columns.keys() - plain[kind].columns.keys() == {'score'}
    assert results.columns['score'] == pytest.approx(expected)
    _, queries = evaluated(metric(), [*complete[1:], samples[0]])  # one lacks it
    assert queries[kind].columns.keys() == plain[kind].columns.keys()


@pytest.mark.parametrize('classes', [2, 4, 5, 12])
def test_the_rank_of_a_class_decides_top1_and_top5_among_ties_too(classes):
    scores = torch.randint(4, (60, classes), generator=torch.Generator().manual_seed(0)).float()
    samples = [
        dict(sample_index=i, scores=row, label=i % classes, image_path=f'{i}.jpg')
        for i, row in enumerate(scores)
    ]
    figures, queries = evaluated(ZeroShotMetric(), samples)
    columns = queries['samples'].columns
    for k in (1, 5):
        assert 100 * np.mean(columns['rank'] <= k) == pytest.approx(figures[f'top{k}'])
        np.testing.assert_array_equal(100.0 * (columns['rank'] <= k), columns[f'top{k}'])
    for row, label, rank in zip(scores, np.arange(60) % classes, columns['rank'], strict=True):
        assert rank == (row >= row[label]).sum()  # ties count against the model
    own = [row[i % classes].item() for i, row in enumerate(scores)]
    assert columns['score'].tolist() == own
    assert figures.keys() == {'top1', 'top5'}


class PluginMetric(TaskMetric):
    """A figure of a plug-in for the samples of entailment."""

    def __init__(self, query_id):
        super().__init__()
        self.query_id = query_id

    def record(self, sample):
        return {name: sample[name] for name in ('label', 'pair_id')}

    def query_columns(self, records):
        return {self.query_id: [25.0 * record['label'] for record in records]}


def test_several_metrics_of_one_loop_keep_the_results_of_all():
    names = ('sample_index', 'pair_id', 'label')
    several = [EntailmentMetric(), *map(PluginMetric, names)]
    metrics, queries = evaluated(several, SAMPLES['entailment'][1])
    _, alone = evaluated(EntailmentMetric(), SAMPLES['entailment'][1])
    for name, value in metrics.items():
        assert figure(queries, name) == pytest.approx(value), name
    # As in results of a test with one metric, which they are compared with.
    assert queries['samples'].ids.tolist() == [f'pair{i}' for i in range(7)]
    assert queries['samples'].columns.keys() == {*alone['samples'].columns, 'pair_id'}


def test_prefixes_are_before_figures_and_not_before_scores():
    samples = [
        {**SAMPLES['vqa'][1][i], **SAMPLES['gqa'][1][i], 'top_answers': [('red', i / 8)]}
        for i in range(6)
    ]
    figures, queries = evaluated([VqaMetric(), GqaMetric()], samples)
    assert queries.keys() == {'vqa', 'gqa'}
    for kind, results in queries.items():
        named = {name for name in figures if name.startswith(f'{kind}/')} - {'gqa/distribution'}
        assert results.columns.keys() == named | {'score'}
        assert results.columns['score'].tolist() == [i / 8 for i in range(6)]


def test_each_record_is_scored_once(monkeypatch):
    calls, score = [], GroundingMetric.query_columns
    monkeypatch.setattr(
        GroundingMetric, 'query_columns', lambda *args: calls.append(args) or score(*args)
    )
    metrics, queries = evaluated(GroundingMetric(), SAMPLES['grounding'][1])
    assert 'testA/accuracy' in metrics and 'score' in queries['samples'].columns
    assert len(calls) == 1


class WronglyScored(PluginMetric):
    """A figure of 50 per cent whose records say something else."""

    def compute_metrics(self, records):
        return {'hits': 50.0}

    def query_columns(self, records):
        return {'rank': [1.0] * 4, 'hits': self.column}


@pytest.mark.parametrize(
    'column, message',
    [
        ([0.0, 100.0, 50.0], r"'hits' of WronglyScored\.query_columns has \(3,\) values for 4 rec"),
        ([0.0, 1.0, 1.0, 0.0], "'hits' of WronglyScored.* mean 0.5, and compute_metrics gives 50:"),
        ([np.nan, 1.0, 0.0, 0.5], "'hits' of WronglyScored.* mean 0.5, and compute_metrics gives"),
        ([0.0, 100.0, np.nan, 50.0], None),
        ([np.nan] * 4, None),
    ],
)
def test_columns_that_do_not_come_to_the_figures_are_named(column, message):
    metric = WronglyScored('label')
    metric.column = column
    expected = pytest.raises(ValueError, match=message) if message else nullcontext()
    with expected:
        evaluated(metric, SAMPLES['entailment'][1][:4])


def test_a_column_lacks_no_record_in_a_validation():
    metric = WronglyScored('label')
    metric.column = [50.0] * 3
    metric.process({}, SAMPLES['entailment'][1][:4])
    with pytest.raises(ValueError, match=r"'hits' of WronglyScored\.query_columns has \(3,\) val"):
        metric.evaluate(4)


def test_queries_of_one_image_or_sentence_are_one_group():
    _, queries = evaluated(EntailmentMetric(), SAMPLES['entailment'][1])
    assert queries['samples'].groups.tolist() == ['0', '0', '1', '1', '2', '2', '3']
    _, queries = evaluated(ReasoningMetric(), SAMPLES['reasoning'][1])
    assert queries['samples'].groups.tolist() == ['g0'] * 3 + ['g1'] * 3


def test_nothing_is_kept_unless_asked_for():
    metric = EntailmentMetric()
    metric.process({}, SAMPLES['entailment'][1])
    metric.evaluate(7)
    assert metric.queries == {}


def test_the_loops_of_a_composite_have_their_names():
    inner = SimpleNamespace(evaluator=SimpleNamespace(metrics=[RetrievalMetric()]))
    loop = SimpleNamespace(loops={'coco': inner})
    keep_queries(loop)
    metric = inner.evaluator.metrics[0]
    metric.process({}, [gallery()])
    metrics = metric.evaluate(1)
    queries = query_results(loop)
    assert figure(queries, 'coco/i2t/R@1') == pytest.approx(metrics['i2t/R@1'])
    assert 'rank' in queries['coco/i2t'].columns


def test_the_file_holds_what_was_written(tmp_path):
    _, queries = evaluated(RetrievalMetric(), [gallery()], 1)
    file = queries_file(tmp_path / 'metrics.json')
    assert file.name == 'metrics.queries.npz'
    assert queries_file('metrics.seed_1').name == 'metrics.seed_1.queries.npz'
    write_queries(file, queries)
    again = read_queries(file)
    assert again.keys() == queries.keys()
    for kind, results in queries.items():
        assert again[kind].ids.tolist() == results.ids.tolist()
        assert again[kind].columns.keys() == results.columns.keys()
        for name, values in results.columns.items():
            np.testing.assert_array_equal(again[kind].columns[name], values)


def test_another_file_is_refused(tmp_path):
    np.savez(tmp_path / 'other.npz', scores=np.zeros(3))
    with pytest.raises(FileError, match="other.npz has an array 'scores'"):
        read_queries(tmp_path / 'other.npz')
    np.savez(tmp_path / 'short.npz', **{'a|id': ['x'], 'a|group': ['x'], 'a|rank': [1.0, 2.0]})
    with pytest.raises(FileError, match=r"short.npz has \(2,\) values in 'a|rank'"):
        read_queries(tmp_path / 'short.npz')


class OwnRecall(RetrievalMetric):
    """R@3, which the package does not have."""

    def measure(self, gallery):
        best = gallery.scores.topk(3, 1).indices
        own = gallery.text_to_image[best] == torch.arange(len(best))[:, None]
        return super().measure(gallery) | {'i2t/R@3': float(own.any(1).double().mean() * 100)}

    def measure_queries(self, gallery):
        queries = super().measure_queries(gallery)
        columns = queries['i2t'].columns
        columns['i2t/R@3'] = 100.0 * (columns['rank'] <= 3)
        return queries


def test_a_retrieval_metric_of_a_plug_in_keeps_what_its_own_figures_are_means_of():
    scored = gallery()._replace(t2i_scores=None)
    metrics, queries = evaluated(OwnRecall(prefix='p'), [scored], 1)
    assert set(queries) == {'p/i2t', 'p/t2i', 'p/first_stage/i2t', 'p/first_stage/t2i'}
    for name in ('p/i2t/R@3', 'p/first_stage/i2t/R@3', 'p/mean_recall'):
        assert 0 < metrics[name] < 100
        assert figure(queries, name) == pytest.approx(metrics[name]), name


def test_a_figure_whose_queries_say_another_one_is_named():
    class Halved(RetrievalMetric):
        def measure(self, gallery):
            found = super().measure(gallery)
            return found | {'i2t/R@1': found['i2t/R@1'] / 2}

    scored = Gallery(torch.eye(4), torch.arange(4))
    with pytest.raises(ValueError, match=r"Halved: 'i2t/R@1' is 50 by measure, .* the mean 100"):
        evaluated(Halved(), [scored], 1)


def test_a_column_that_has_no_value_for_each_query_is_named():
    """It was found when a verdict read the file, after all trainings."""

    class Mean(OwnRecall):
        def measure_queries(self, gallery):
            queries = super().measure_queries(gallery)
            columns = queries['i2t'].columns
            columns['i2t/R@3'] = columns['i2t/R@3'].mean()
            return queries

    message = r"Mean\.measure_queries: 'i2t/R@3' of i2t has the shape \(\), expected \(12,\)"
    with pytest.raises(ValueError, match=message):
        evaluated(Mean(), [gallery()._replace(t2i_scores=None)], 1)
