"""Predicted boxes on pictures."""

import numpy as np
import pytest

from xmodal.visualization.boxes import TRUE, draw_grounding


def edges(drawn, colour):
    """First column and row, last column and row of a colour."""
    rows, columns = np.nonzero((drawn == colour).all(2))
    return columns.min(), rows.min(), columns.max(), rows.max()


@pytest.mark.parametrize('size', [(400, 600), (200, 300), (800, 600)])
def test_a_box_lies_where_it_was_annotated_whatever_size_the_picture_has(size):
    height, width = size
    heat = np.zeros((200, 300), np.float32)  # the size that boxes are annotated in
    image = np.zeros((height, width, 3), np.uint8)
    drawn = draw_grounding(image, heat, [200, 150, 50, 40], [30, 20, 120, 100], 'a ball')
    shown = drawn[:-28]  # without the text
    found = np.divide(edges(shown, TRUE), [shown.shape[1], shown.shape[0]] * 2)
    expected = [30 / 300, 20 / 200, 150 / 300, 120 / 200]
    assert found == pytest.approx(expected, abs=0.01)
