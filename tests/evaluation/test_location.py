"""The area under the ROC curve of a map, against literal pairs and planted maps."""

import math

import pytest
import torch

from xmodal.evaluation.location import location_auc, patches_in_boxes


def test_the_area_is_the_share_of_pairs_that_the_patch_on_the_object_wins():
    torch.manual_seed(0)
    scores = torch.randint(0, 4, (4, 5, 3)).float()  # with ties
    scores[0, 0, 0], scores[2, 3, 1] = math.inf, -math.inf
    on_object = torch.rand(4, 5) < 0.4
    actual = location_auc(scores, on_object)
    for k in range(3):
        wins = [
            1.0 if on > beside else 0.5 if on == beside else 0.0
            for on in scores[on_object][:, k].tolist()
            for beside in scores[~on_object][:, k].tolist()
        ]
        assert float(actual[k]) == pytest.approx(sum(wins) / len(wins))
        assert float(location_auc(scores[..., k], on_object)) == pytest.approx(float(actual[k]))


def test_maps_that_find_the_object_avoid_it_or_say_nothing():
    on_object = patches_in_boxes([[8, 0, 8, 16]], (3, 3), patch_size=8)
    assert on_object.nonzero().tolist() == [[0, 1], [1, 1]]
    maps = torch.stack([on_object.float(), -on_object.float(), torch.ones(3, 3)], -1)
    assert location_auc(maps, on_object).tolist() == [1.0, 0.0, 0.5]


def test_patches_belong_to_a_box_by_their_centre():
    assert not patches_in_boxes([[5, 0, 6, 16]], (2, 2), patch_size=8).any()  # between two centres
    assert patches_in_boxes([[4, 4, 1, 1], [12, 12, 1, 1]], (2, 2), 8).nonzero().tolist() == [
        [0, 0],
        [1, 1],
    ]


@pytest.mark.parametrize('value', [True, False])
def test_objects_that_have_all_patches_or_none_are_refused(value):
    with pytest.raises(ValueError, match='on the object and beside it'):
        location_auc(torch.zeros(2, 2), torch.full((2, 2), value))


def test_nan_is_refused():
    scores = torch.tensor([[math.nan, 1.0]])
    with pytest.raises(ValueError, match='1 of 2 scores are NaN'):
        location_auc(scores, torch.tensor([[True, False]]))
