"""Scores of boxes, MAttNet's IoU, the pointing game, and which ids are required."""

import json
import math

import pytest
import torch

from xmodal.evaluation.grounding import (
    GroundingMetric,
    box_iou,
    box_scores,
    box_tensor,
    choose_box,
    grounding_metrics,
    pointing_hit,
)


def literal_score(heat, box):
    """ALBEF's arithmetic: whole pixels from the integer part of each edge."""
    x, y, width, height = box
    rows = range(int(y), min(int(y + height), len(heat)))
    columns = range(int(x), min(int(x + width), len(heat[0])))
    total = math.fsum(heat[row][column] for row in rows for column in columns)
    return total / (width * height) ** 0.5


def literal_iou(one, other):
    """MAttNet's arithmetic."""
    left, top = max(one[0], other[0]), max(one[1], other[1])
    right = min(one[0] + one[2] - 1, other[0] + other[2] - 1)
    bottom = min(one[1] + one[3] - 1, other[1] + other[3] - 1)
    shared = 0
    if left < right and top < bottom:
        shared = (right - left + 1) * (bottom - top + 1)
    return shared / (one[2] * one[3] + other[2] * other[3] - shared)


def random_boxes(count, height, width):
    corner = torch.rand(count, 2) * torch.tensor([width, height]) * 0.8
    size = 1 + torch.rand(count, 2) * torch.tensor([width, height]) * 0.5
    return torch.cat([corner, size], 1).double()


@pytest.mark.parametrize('size', [(7, 11), (30, 20)])
def test_the_score_of_a_box_is_its_heat_over_the_root_of_its_area(size):
    torch.manual_seed(0)
    heat, boxes = torch.randn(size), random_boxes(20, *size)
    expected = [literal_score(heat.tolist(), box) for box in boxes.tolist()]
    torch.testing.assert_close(box_scores(heat, boxes), torch.tensor(expected).double())


def test_there_is_no_heat_outside_the_image():
    boxes = box_tensor([[-2, -3, 4, 5], [0, 0, 2, 2], [3, 3, 50, 1], [9, 9, 2, 2]])
    actual = box_scores(torch.ones(4, 4), boxes)
    expected = [4 / 20**0.5, 2.0, 1 / 50**0.5, 0.0]
    torch.testing.assert_close(actual, box_tensor(expected))


def test_among_equal_scores_and_for_a_map_of_zeros_the_first_box_is_chosen():
    boxes = box_tensor([[0, 0, 2, 2], [4, 4, 3, 3], [5, 0, 2, 2]])
    heat = torch.zeros(8, 8)
    assert choose_box(heat, boxes) == 0
    heat[4:7, 4:7] = 1
    assert choose_box(heat, boxes) == 1
    # The map before has no influence.
    assert choose_box(torch.zeros(8, 8), boxes) == 0
    heat = torch.zeros(8, 8)
    heat[0:2, 5:7] = heat[0:2, 0:2] = 1
    assert choose_box(heat, boxes) == 0


def test_heat_below_zero_everywhere_still_has_a_best_box():
    boxes = box_tensor([[0, 0, 4, 4], [0, 0, 1, 1]])
    assert choose_box(-torch.ones(8, 8), boxes) == 1


def test_a_map_that_is_not_finite_is_an_error():
    with pytest.raises(ValueError, match='heat map is not finite'):
        choose_box(torch.full((4, 4), torch.nan), box_tensor([[0, 0, 2, 2]]))


def test_iou_is_that_of_mattnet():
    torch.manual_seed(0)
    boxes, truths = random_boxes(40, 30, 30), random_boxes(5, 30, 30)
    for truth in truths:
        expected = [literal_iou(box, truth.tolist()) for box in boxes.tolist()]
        torch.testing.assert_close(box_iou(boxes, truth), box_tensor(expected))


@pytest.mark.parametrize(
    'box, expected',
    [
        ([10, 10, 4, 4], 1.0),
        ([12, 10, 4, 4], 8 / 24),
        ([13, 10, 4, 4], 0.0),  # only one column shared: 0 in MAttNet
        ([14, 10, 4, 4], 0.0),
        ([10, 10, 4, 2], 0.5),
    ],
)
def test_iou_of_hand_made_boxes(box, expected):
    assert box_iou(box_tensor([box]), box_tensor([10, 10, 4, 4])).item() == pytest.approx(expected)


def test_pointing_needs_all_of_the_hottest_pixels_in_the_box():
    box = box_tensor([2, 1, 3, 2])  # columns 2 to 4, rows 1 and 2
    heat = torch.zeros(6, 6)
    assert not pointing_hit(heat, box)
    heat[2, 4] = 1
    assert pointing_hit(heat, box)
    heat[1, 2] = 1
    assert pointing_hit(heat, box)
    heat[3, 4] = 1
    assert not pointing_hit(heat, box)
    heat[2, 4] = 2
    assert pointing_hit(heat, box)


REFERENCES = [
    {'sent_id': 7, 'split': 'val', 'box': [0, 0, 10, 10]},
    {'sent_id': 3, 'split': 'testA', 'box': [5, 5, 10, 10]},
    {'sent_id': 9, 'split': 'testA', 'box': [5, 5, 10, 10]},
    {'sent_id': 1, 'split': 'testB', 'box': [2, 2, 4, 4]},
]
BOXES = {7: [0, 0, 10, 5], 3: [6, 5, 10, 10], 9: [0, 0, 4, 4], 1: [2, 2, 4, 4]}


def predictions(**boxes):
    return [{'sent_id': sent_id, 'box': box} for sent_id, box in (BOXES | boxes).items()]


def test_accuracy_is_counted_by_split_at_an_iou_of_a_half():
    actual = grounding_metrics(predictions(), REFERENCES)
    assert actual == {'val/accuracy': 100, 'testA/accuracy': 50, 'testB/accuracy': 100}


@pytest.mark.parametrize(
    'given, message',
    [
        (predictions()[:2], r'4 predictions expected: 2 are missing \(1, 9\)$'),
        ([*predictions(), {'sent_id': 5, 'box': [0, 0, 1, 1]}], r'1 are unknown \(5\)$'),
        ([*predictions(), *predictions()[:1]], r'1 are given twice \(7\)$'),
        (
            [{'sent_id': 8, 'box': [0, 0, 1, 1]}],
            r'4 are missing \(1, 3, 7, …\); 1 are unknown \(8\)$',
        ),
    ],
)
def test_missing_unknown_and_duplicated_predictions_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        grounding_metrics(given, REFERENCES)


def sample(index, split, heat, chosen):
    proposals = [[0.0, 0.0, 4.0, 4.0], [4.0, 4.0, 4.0, 4.0], [4.0, 0.0, 4.0, 4.0]]
    return dict(
        sample_index=index,
        sent_id=10 + index,
        ref_id=index // 2,
        split=split,
        heat=heat,
        proposals=proposals,
        chosen=chosen,
        box=[4.0, 4.0, 4.0, 3.0],
    )


def test_the_metric_scores_every_sample_once_and_writes_the_boxes(tmp_path):
    hot = torch.zeros(8, 8)
    hot[5, 5] = 1
    file = tmp_path / 'boxes.json'
    metric = GroundingMetric(save_predictions=str(file))
    cold = hot.flip(0)
    samples = [sample(0, 'val', hot, 1), sample(1, 'val', hot, 0), sample(2, 'testB', cold, 1)]
    metric.process({}, samples)
    metric.process({}, samples[1:2])  # as from a sampler that pads
    actual = metric.evaluate(3)
    third = pytest.approx(100 / 3)
    assert actual == {
        'val/accuracy': 50,
        'val/pointing': 100,
        'val/chance': third,
        'testB/accuracy': 100,
        'testB/pointing': 0,
        'testB/chance': third,
    }
    written = json.loads(file.read_text())
    assert written[1] == {'sent_id': 11, 'ref_id': 0, 'box': [0.0, 0.0, 4.0, 4.0]}
    assert len(written) == 3
