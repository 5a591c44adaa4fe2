"""Absolute position embeddings."""

import pytest
import torch

from xmodal.models.necks.absolute_position import AbsoluteEmbedding
from xmodal.structures import Tokens


def test_absolute_position_adds_an_embedding_to_every_token(tokens, build_position):
    image, text = tokens()
    position = build_position('ape')
    image_inputs, text_inputs = position.embed_inputs(image, text)
    table = position.absolute
    torch.testing.assert_close(
        image_inputs.embeddings, image.embeddings + table.image_position.expand(2, -1, -1)
    )
    torch.testing.assert_close(
        text_inputs.embeddings, text.embeddings + table.text_position[:, :6].expand(2, -1, -1)
    )


def test_absolute_position_is_resampled_for_another_grid():
    table = AbsoluteEmbedding(4, (3, 3), 8)
    with torch.no_grad():
        table.image_position[:, 0] = 7.0
        table.image_position[:, 1:] = torch.arange(3.0).repeat(3)[:, None]  # the column
    image = Tokens(torch.zeros(1, 1 + 24, 4), None, (4, 6))
    actual = table(image, Tokens(torch.zeros(1, 2, 4)))[0].embeddings[0, :, 0]
    assert actual[0] == 7
    grid = actual[1:].view(4, 6)
    assert (grid.diff(dim=1) > 0).all()
    torch.testing.assert_close(grid, grid[:1].expand(4, -1), atol=1e-5, rtol=0)


def test_a_text_longer_than_the_table_is_an_error(tokens, build_position):
    image, text = tokens(words=9)
    with pytest.raises(ValueError, match='a text of 9 tokens, but fusion position max_length=8'):
        build_position('ape').embed_inputs(image, text)


def test_a_region_has_the_embedding_of_the_cell_of_its_centre():
    table = AbsoluteEmbedding(4, (2, 3), 8)
    boxes = torch.tensor([[[0.0, 0.0, 0.2, 0.4], [0.4, 0.6, 0.6, 1.0], [0.6, 0.2, 1.0, 0.6]]])
    image = Tokens(torch.randn(1, 3, 4), boxes=boxes)
    actual = table(image, Tokens(torch.zeros(1, 2, 4)))[0].embeddings - image.embeddings
    cells = [(0, 0), (1, 1), (0, 2)]  # of the centres (y, x): (0.2, 0.1), (0.8, 0.5), (0.4, 0.8)
    expected = torch.stack([table.image_position[0, 1 + 3 * r + c] for r, c in cells])
    torch.testing.assert_close(actual[0], expected)
