"""Predicted boxes drawn on images."""

import numpy as np
import pytest

from xmodal.visualization.boxes import TRUE, draw_grounding


def edges(drawn, colour):
    """Returns the first column and row and the last column and row of a colour."""
    rows, columns = np.nonzero((drawn == colour).all(2))
    return columns.min(), rows.min(), columns.max(), rows.max()


@pytest.mark.parametrize('size', [(400, 600), (200, 300), (800, 600)])
def test_a_box_is_drawn_where_it_was_annotated_for_every_image_size(size):
    height, width = size
    heat = np.zeros((200, 300), np.float32)  # the resolution of the annotations
    image = np.zeros((height, width, 3), np.uint8)
    drawn = draw_grounding(image, heat, [200, 150, 50, 40], [30, 20, 120, 100], 'a ball')
    image_part = drawn[:-28]  # without the text
    edge_shares = np.divide(edges(image_part, TRUE), [image_part.shape[1], image_part.shape[0]] * 2)
    expected = [30 / 300, 20 / 200, 150 / 300, 120 / 200]
    assert edge_shares == pytest.approx(expected, abs=0.01)
