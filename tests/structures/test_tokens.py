"""Token sets."""

import pytest
import torch

from xmodal.structures import Tokens


def test_token_sets_of_different_lengths_join_with_padding_and_a_mask():
    short = Tokens(torch.ones(2, 3, 4), boxes=torch.ones(2, 3, 4))
    mask = torch.tensor([[True, True, True, False, False]])
    long = Tokens(torch.full((1, 5, 4), 2.0), mask, boxes=torch.ones(1, 5, 4))
    joined = Tokens.join([short, long])
    assert joined.embeddings.shape == (3, 5, 4) and joined.boxes.shape == (3, 5, 4)
    assert joined.attention_mask.tolist() == [[True] * 3 + [False] * 2] * 3
    assert joined.embeddings[0].sum() == 12 and joined.embeddings[2].sum() == 40


def test_token_sets_of_equal_length_join_without_a_mask():
    parts = [Tokens(torch.rand(2, 3, 4)), Tokens(torch.rand(1, 3, 4))]
    joined = Tokens.join(parts)
    assert joined.attention_mask is None and joined.boxes is None
    assert torch.equal(joined.embeddings, torch.cat([part.embeddings for part in parts]))
    assert joined.full_mask().all() and joined.full_mask().shape == (3, 3)


def test_places_of_patches_are_their_centres_row_by_row():
    places = Tokens(torch.zeros(2, 1 + 6, 4), grid_size=(2, 3)).places()
    centres = [[(r + 0.5) / 2 * 2 - 1, (c + 0.5) / 3 * 2 - 1] for r in range(2) for c in range(3)]
    expected = torch.tensor([[0.0, 0.0], *centres])
    torch.testing.assert_close(places, expected.expand(2, -1, -1))


def test_places_of_regions_are_the_centres_of_their_boxes():
    boxes = torch.tensor([[[0.0, 0.5, 0.5, 1.0], [0.9, 0.0, 1.0, 0.2]]])
    tokens = Tokens(torch.zeros(1, 2, 4), boxes=boxes)
    torch.testing.assert_close(tokens.places(), torch.tensor([[[0.5, -0.5], [-0.8, 0.9]]]))
    assert tokens.cells((4, 10)).tolist() == [[[3, 2], [0, 9]]]


def test_the_corners_of_an_image_are_in_the_outermost_cells():
    boxes = torch.tensor([[[0.0] * 4, [1.0] * 4]])
    assert Tokens(torch.zeros(1, 2, 4), boxes=boxes).cells((3, 5)).tolist() == [[[0, 0], [2, 4]]]


def test_regions_without_boxes_are_nowhere():
    with pytest.raises(ValueError, match='found regions without boxes'):
        Tokens(torch.zeros(1, 2, 4)).places()
