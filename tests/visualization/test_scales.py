"""The figure of the LayerScales of token types."""

import pytest

from xmodal.visualization.charts import draw_scales, to_svg


def record(iteration, **statistics):
    return dict(when='', iteration=iteration, scales={'token_type': statistics})


def test_the_figure_shows_the_values_that_the_hook_wrote():
    records = [
        record(0, mean_abs=1e-5, max_abs=1e-5, share_text=1e-6, share_image=2e-6),
        record(7, mean_abs=1e-3, max_abs=0.3, share_text=1e-4, share_image=2e-4),
    ]
    (figure,) = draw_scales(records)
    shown = {
        line.get_label(): list(zip(*line.get_data(), strict=True))
        for axes in figure.axes
        for line in axes.lines
    }
    assert shown == {
        'mean abs': [(0, 1e-5), (7, 1e-3)],
        'max abs': [(0, 1e-5), (7, 0.3)],
        'share text': [(0, 1e-6), (7, 1e-4)],
        'share image': [(0, 2e-6), (7, 2e-4)],
    }
    assert to_svg(figure).startswith('<svg')


@pytest.mark.parametrize('records', [[], [record(0, share_text=0.1)]])
def test_empty_records_and_types_without_a_scale_are_drawn(records):
    figures = draw_scales(records)
    assert len(figures) == len(records)
    for figure in figures:
        assert [len(axes.lines) for axes in figure.axes] == [0, 1]
        assert to_svg(figure)
