"""Metrics of minimal pairs, against planted scores and the benchmarks' own rules, written out."""

import random

import numpy as np
import pytest
import torch

from xmodal.evaluation import SkillMetric, StatementMetric, WinogroundMetric
from xmodal.evaluation.queries import figure
from xmodal.evaluation.skills import best_threshold


def measure(metric, samples):
    """The metrics of samples (skill, label, vectors, fusion, image, group), and their queries."""
    metric.keeps_queries = True
    metric.process(
        None,
        [
            {
                'sample_index': index,
                'pair_id': str(index),
                'skill': skill,
                'label': label,
                'vectors': torch.tensor(vectors, dtype=torch.float64),
                **({} if fusion is None else {'fusion': torch.tensor(fusion)}),
                'image_id': image,
                'group': group,
            }
            for index, (skill, label, vectors, fusion, image, group) in enumerate(samples)
        ],
    )
    return metric.evaluate(len(samples)), metric.queries


def test_accuracy_by_skill_and_the_share_of_the_attainable():
    samples = [
        ('colour', 0, [0.9, 0.1], [1.0, 2.0], 0, '0'),
        ('colour', 0, [0.1, 0.9], [3.0, 2.0], 1, '1'),
        ('colour', 1, [0.1, 0.9], [0.0, 2.0], 2, '2'),
        ('colour', 0, [0.5, 0.5], [2.0, 2.0], 3, '3'),  # a tie counts against the model
        ('order', 0, [0.9, 0.1, 0.2, 0.3, 0.4], [0.0, 1.0, 1.0, 1.0, 1.0], 4, '4'),
    ]
    figures, queries = measure(SkillMetric(ceilings={'colour': 90.0}), samples)
    expected = {
        'vectors/colour': 50.0,
        'vectors/order': 100.0,
        'vectors/mean': 75.0,
        'vectors/attainable/colour': 0.0,
        'vectors/attainable/order': 100.0,
        'vectors/attainable/mean': 50.0,
        'fusion/colour': 50.0,
        'fusion/order': 0.0,
        'fusion/mean': 25.0,
        'fusion/attainable/colour': 0.0,
        'fusion/attainable/order': -25.0,  # (0 - 20) / (100 - 20)
        'fusion/attainable/mean': -12.5,
        'chance/colour': 50.0,
        'chance/order': 20.0,
        'chance/mean': 35.0,
    }
    assert figures == pytest.approx(expected)
    for name, value in expected.items():
        if not name.startswith('chance'):
            assert figure(queries, name) == pytest.approx(value), name
    assert queries['samples'].groups.tolist() == ['0', '1', '2', '3', '4']


def test_the_margin_of_a_pair_is_by_the_last_way_and_counts_the_best_wrong_text():
    samples = [
        ('colour', 0, [0.75, 0.25], [1.0, 2.0], 0, '0'),
        ('colour', 1, [0.5, 0.5], [2.0, 2.0], 1, '1'),
        ('order', 2, [0.25, 0.5, 1.0], [0.0, 1.0, 4.0], 2, '2'),
    ]
    figures, queries = measure(SkillMetric(), samples)
    assert queries['samples'].columns['score'].tolist() == [-1, 0, 3]
    _, by_vectors = measure(SkillMetric(), [(*x[:3], None, *x[4:]) for x in samples])
    assert by_vectors['samples'].columns['score'].tolist() == [0.5, 0, 0.5]
    assert 'score' not in figures
    rare = ('alone', 0, [1.0], [1.0], 3, '3')  # nothing to compare with, in a skill left out
    _, queries = measure(SkillMetric(min_count=2), [*samples[:2], rare])
    assert np.isnan(queries['samples'].columns['score'][2])


def test_a_ceiling_stretches_the_share():
    samples = [('count', 0, [1.0, 0.0], None, n, str(n)) for n in range(3)]
    samples.append(('count', 0, [0.0, 1.0], None, 3, '3'))
    figures, _ = measure(SkillMetric(ceilings={'count': 75.0}), samples)
    assert figures['vectors/attainable/count'] == pytest.approx(100.0)
    with pytest.raises(ValueError, match='ceilings.count=50, expected more than chance, 50'):
        measure(SkillMetric(ceilings={'count': 50.0}), samples)


def test_rare_skills_are_left_out():
    samples = [('rare', 0, [0.0, 1.0], None, 0, '0')]
    samples += [('often', 0, [1.0, 0.0], None, n, str(n)) for n in (1, 2)]
    figures, queries = measure(SkillMetric(min_count=2), samples)
    assert figures['vectors/mean'] == 100.0 and 'vectors/rare' not in figures
    assert figure(queries, 'vectors/mean') == 100.0
    with pytest.raises(ValueError, match='no skill has min_count=9 samples'):
        measure(SkillMetric(min_count=9), samples)


def test_scores_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match=r'the scores \(vectors\) of 0 are not finite'):
        measure(SkillMetric(), [('a', 0, [float('nan'), 1.0], None, 0, '0')])


def test_winoground_as_in_its_own_script():
    rng = random.Random(0)
    samples, text, image, group, least = [], 0, 0, 0, []
    for example in range(200):
        c0_i0, c1_i0, c0_i1, c1_i1 = (rng.random() for _ in range(4))
        right = [float(example % 4 > 0), 0.5]  # by fusion all but each fourth are right
        own = 2 * example, str(example)
        samples.append(('Object', 0, [c0_i0, c1_i0], right, *own))
        samples.append(('Object', 1, [c0_i1, c1_i1], right[::-1], own[0] + 1, own[1]))
        text_correct = c0_i0 > c1_i0 and c1_i1 > c0_i1
        image_correct = c0_i0 > c0_i1 and c1_i1 > c1_i0
        text, image = text + text_correct, image + image_correct
        group += text_correct and image_correct
        least += 2 * [min(c0_i0 - c1_i0, c1_i1 - c0_i1, c0_i0 - c0_i1, c1_i1 - c1_i0)]
    figures, queries = measure(WinogroundMetric(), samples)
    for name, hits in (('text', text), ('image', image), ('group', group)):
        assert figures[f'vectors/{name}'] == pytest.approx(100 * hits / 200)
        assert figure(queries, f'vectors/{name}') == pytest.approx(100 * hits / 200)
        assert figures[f'fusion/{name}'] == 75
    # Of the 24 orders of four scores, 6, 6 and 4 are right.
    chances = {'chance/text': 25, 'chance/image': 25, 'chance/group': 100 * 4 / 24}
    assert {name: figures[name] for name in chances} == pytest.approx(chances)
    assert len(set(queries['samples'].groups)) == 200
    assert 'score' not in figures
    _, by_vectors = measure(WinogroundMetric(), [(*x[:3], None, *x[4:]) for x in samples])
    columns = by_vectors['samples'].columns
    assert columns['score'] == pytest.approx(least)
    np.testing.assert_array_equal(100.0 * (columns['score'] > 0), columns['vectors/group'])
    with pytest.raises(ValueError, match='example 0 has 1 samples, expected 2'):
        measure(WinogroundMetric(), samples[1:])


def test_statements_are_judged_by_the_threshold_of_the_other_half():
    # Images a, b, c, d: a and c are one half, b and d the other.
    scored = [
        ('a', 0.1, 0), ('c', 0.5, 1), ('a', 0.9, 1),  # thresholds from 0.1 to 0.5: the middle, 0.3
        ('b', 0.25, 1), ('b', 0.6, 0), ('d', 0.8, 1), ('d', 0.7, 0),  # from 0.7 to 0.8: 0.75
    ]  # fmt: skip
    samples = [('near', label, [score], None, image, '') for image, score, label in scored]
    figures, queries = measure(StatementMetric(), samples)
    hits = [True, False, True, False, False, True, False]  # 0.75 judges a, c; 0.3 judges b, d
    assert queries['samples'].columns['vectors/accuracy'].tolist() == [100.0 * hit for hit in hits]
    assert figures['vectors/accuracy'] == pytest.approx(100 * 3 / 7)
    assert queries['samples'].columns['score'].tolist() == [score for _, score, _ in scored]
    true = [s for _, s, label in scored if label]
    false = [s for _, s, label in scored if not label]
    wins = sum(t > f for t in true for f in false)
    assert figures['vectors/auc'] == pytest.approx(100 * wins / 12)
    assert figures['chance/accuracy'] == pytest.approx(100 * 4 / 7)
    with pytest.raises(ValueError, match='two images or more'):
        measure(StatementMetric(), samples[:1])
    figures, _ = measure(StatementMetric(), [x for x in samples if x[1]])
    assert figures == {'vectors/accuracy': 100, 'chance/accuracy': 100}  # an AUC needs both labels


def test_ties_count_half_in_an_auc():
    scored = [('a', 1.0, 1), ('a', 1.0, 0), ('b', 2.0, 1), ('b', 0.0, 0)]
    figures, _ = measure(
        StatementMetric(),
        [('near', label, [score], None, image, '') for image, score, label in scored],
    )
    assert figures['vectors/auc'] == 100 * (0.5 + 1 + 1 + 1) / 4


def test_a_threshold_is_the_best_of_all():
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores, labels = rng.integers(0, 6, 12) / 5, rng.integers(0, 2, 12)
        best = max(np.mean((scores > t) == labels) for t in np.linspace(-1, 2, 301))
        assert np.mean((scores > best_threshold(scores, labels)) == labels) == best
