"""The area under the ROC curve of a map, against literal pairs and planted maps."""

import json
import math

import pytest
import torch

from xmodal.evaluation.location import (
    location_auc,
    map_aucs,
    named_tokens,
    read_objects,
    token_centres,
    tokens_in_boxes,
    tokens_on_referents,
)
from xmodal.structures import DataSample, ImageTextBatch, Regions, Tokens


def test_the_area_is_the_share_of_pairs_that_the_patch_on_the_object_wins():
    torch.manual_seed(0)
    scores = torch.randint(0, 4, (20, 3)).float()  # with ties
    scores[0, 0], scores[13, 1] = math.inf, -math.inf
    on_object = torch.rand(20) < 0.4
    actual = location_auc(scores, on_object)
    for k in range(3):
        wins = [
            1.0 if on > beside else 0.5 if on == beside else 0.0
            for on in scores[on_object][:, k].tolist()
            for beside in scores[~on_object][:, k].tolist()
        ]
        assert float(actual[k]) == pytest.approx(sum(wins) / len(wins))
        assert float(location_auc(scores[..., k], on_object)) == pytest.approx(float(actual[k]))


def grid(rows, columns):
    """The batch of one image of patches, and its tokens."""
    nothing = torch.zeros(1, 1)
    batch = ImageTextBatch(torch.zeros(1, 3, 8, 8), *[nothing] * 5)
    return batch, Tokens(torch.zeros(1, 1 + rows * columns, 4), grid_size=(rows, columns))


def test_maps_that_find_the_object_avoid_it_or_say_nothing():
    on_object = tokens_in_boxes([[1 / 3, 0, 2 / 3, 2 / 3]], token_centres(*grid(3, 3), 0))
    assert on_object.nonzero().flatten().tolist() == [1, 4]  # the middle column, without its last
    maps = torch.stack([on_object.float(), -on_object.float(), torch.ones(9)], -1)
    assert location_auc(maps, on_object).tolist() == [1.0, 0.0, 0.5]


def test_maps_are_compared_on_the_patches_of_the_objects_of_a_word():
    thirds = torch.tensor([1 / 6, 3 / 6, 5 / 6])
    centres = torch.cartesian_prod(thirds, thirds).flip(-1)
    objects = [({'red', 'disc'}, [0, 0, 0.53, 0.3]), ({'blue', 'bar'}, [0.66, 0.66, 1, 1])]
    ((index, on_object, on_others),) = named_tokens(['red', 'the'], objects, centres)
    assert index == 0 and not on_others.any() and on_object.nonzero().flatten().tolist() == [0, 1]
    anchors = torch.tensor([1.0, 1, 0, 0, 0, 0, 0, 0, 1])
    two_groups = torch.stack([anchors, -anchors], -1)
    # The mean of the groups is 0 everywhere; 12 of 14 pairs are won or lost, 2 tied.
    assert map_aucs(two_groups, on_object).tolist() == pytest.approx([0.5, 13 / 14, 1 / 14])
    assert map_aucs(-torch.arange(9.0), on_object).tolist() == [1.0]


def test_a_map_that_is_planted_in_the_box_of_an_expression_finds_it():
    """On 64 x 32 pixels in patches of 8: a box of two patches, all patches, and none."""
    batch, image = grid(4, 8)
    batch = batch._replace(images=batch.images.expand(3, -1, -1, -1))
    boxes = [16, 8, 16, 8], [0, 0, 64, 32], [17, 9, 2, 2]
    proposals = [[16, 8, 15, 8], [32, 8, 8, 16]]  # the first has more than half in common
    samples = [DataSample(size=(32, 64), box=list(box), proposals=proposals) for box in boxes]
    ((row, on_object, on_others),) = tokens_on_referents(batch, image, samples)
    planted = torch.zeros(4, 8)
    planted[1, 2:4] = 1
    assert row == 0
    assert on_others.nonzero().flatten().tolist() == [8 + 4, 2 * 8 + 4]
    assert map_aucs(planted.flatten(), on_object).tolist() == [1.0]
    assert map_aucs(-planted.flatten(), on_object).tolist() == [0.0]
    assert map_aucs(planted.roll(1, 0).flatten(), on_object).item() < 0.5


def test_tokens_belong_to_a_box_by_their_centre():
    centres = token_centres(*grid(2, 3), 0)
    assert centres.tolist() == [
        pytest.approx([x / 6, y / 4]) for y in (1, 3) for x in (1, 3, 5)
    ]  # from left to right, then down
    between = [0.2, 0, 0.45, 1]
    assert not tokens_in_boxes([between], centres).any()
    first, last = [0.1, 0.2, 0.2, 0.3], [0.8, 0.7, 0.9, 0.8]
    assert tokens_in_boxes([first, last], centres).nonzero().flatten().tolist() == [0, 5]


def test_regions_have_the_centres_of_their_boxes_and_no_padding():
    boxes = torch.tensor([[[0.0, 0.0, 0.5, 1.0], [0.2, 0.2, 0.4, 0.8], [0.0, 0.0, 0.0, 0.0]]])
    mask = torch.tensor([[True, True, False]])
    batch, image = grid(1, 3)
    batch = batch._replace(images=Regions(torch.zeros(1, 3, 4), mask, boxes))
    assert token_centres(batch, image, 0).tolist() == [
        pytest.approx([0.25, 0.5]), pytest.approx([0.3, 0.5]),
    ]  # fmt: skip
    with pytest.raises(ValueError, match='regions have no boxes'):
        token_centres(batch._replace(images=batch.images._replace(boxes=None)), image, 0)


def test_boxes_of_instances_are_shares_and_persons_have_other_names(tmp_path):
    file = tmp_path / 'instances.json'
    content = {
        'images': [{'id': 3, 'width': 200, 'height': 100}],
        'categories': [{'id': 1, 'name': 'person'}, {'id': 2, 'name': 'ring'}],
        'annotations': [
            {'image_id': 3, 'category_id': 1, 'bbox': [50, 10, 100, 20]},
            {'image_id': 3, 'category_id': 2, 'bbox': [0, 0, 200, 100], 'attributes': ['red']},
        ],
    }
    file.write_text(json.dumps(content))
    (person, box), (ring, whole) = read_objects(file)[3]
    assert {'person', 'woman'} <= person and box == [0.25, 0.1, 0.75, 0.3]
    assert ring == {'ring', 'red'} and whole == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'category_id': 7}, r'annotations\[0\]\.category_id is 7, expected the id of a category'),
        ({'image_id': 7}, r'annotations\[0\]\.image_id is 7, expected the id of an image'),
        ({'bbox': [1, 2, 3]}, r'the box of annotation 0 is \[1, 2, 3\], expected x, y, width'),
    ],
)
def test_a_wrong_annotation_is_named(tmp_path, change, message):
    file = tmp_path / 'instances.json'
    content = {
        'images': [{'id': 3, 'width': 200, 'height': 100}],
        'categories': [{'id': 1, 'name': 'person'}],
        'annotations': [{'image_id': 3, 'category_id': 1, 'bbox': [0, 0, 2, 2], **change}],
    }
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        read_objects(file)


@pytest.mark.parametrize('value', [True, False])
def test_objects_that_have_all_patches_or_none_are_refused(value):
    with pytest.raises(ValueError, match='on the object and beside it'):
        location_auc(torch.zeros(2, 2), torch.full((2, 2), value))


def test_nan_is_refused():
    scores = torch.tensor([[math.nan, 1.0]])
    with pytest.raises(ValueError, match='1 of 2 scores are NaN'):
        location_auc(scores, torch.tensor([[True, False]]))
