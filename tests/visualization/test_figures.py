"""The scalars that the report reads, and the images that it shows."""

import json

import numpy as np
import pytest
from PIL import Image

from xmodal.visualization.charts import (
    draw_aucs,
    draw_curves,
    draw_deletion,
    draw_radar,
    read_scalars,
)
from xmodal.visualization.figures import to_uri
from xmodal.visualization.report import select_queries
from xmodal.visualization.retrieval_examples import read_thumbnail


def write_logs(folder, runs):
    for name, rows in runs.items():
        (folder / name / 'vis_data').mkdir(parents=True)
        text = ''.join(f'{json.dumps(row)}\n' for row in rows)
        (folder / name / 'vis_data/scalars.json').write_text(text + '{"loss": 1.')


def test_the_last_value_of_a_resumed_run_counts_and_half_a_line_is_ignored(tmp_path):
    runs = {
        '20260101': [{'loss': 3.0, 'step': 1}, {'loss': 2.0, 'step': 2}],
        '20260102': [{'loss': 2.5, 'step': 2}, {'mean_recall': 50.0, 'step': 2}],
    }
    write_logs(tmp_path, runs)
    assert read_scalars(tmp_path) == {
        'loss': [(1, 3.0), (2, 2.5)],
        'mean_recall': [(2, 50.0)],
        'step': [(1, 1), (2, 2)],
    }


def test_of_a_run_that_was_given_up_nothing_is_shown_after_the_place_where_it_went_on(tmp_path):
    whole = [{'loss': 1 / step, 'step': step} for step in range(10, 70, 10)]
    validated = [{'mean_recall': 20.0 * epoch, 'step': epoch} for epoch in (1, 2, 3)]
    # From the checkpoint of epoch 1, with longer steps of the log, to an early stop after epoch 2.
    resumed = [{'loss': 5.0, 'step': 35}, {'mean_recall': 30.0, 'step': 2}]
    write_logs(tmp_path, {'20260101': whole + validated, '20260102': resumed})
    scalars = read_scalars(tmp_path)
    assert scalars['loss'] == [(10, 0.1), (20, 0.05), (30, 1 / 30), (35, 5.0)]
    assert scalars['mean_recall'] == [(1, 20.0), (2, 30.0)]


def test_a_report_shows_no_query_twice():
    assert [select_queries(size) for size in (1, 4, 5)] == [[0], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert select_queries(500) == [99, 199, 299, 399]


def test_a_curve_of_three_epochs_has_no_ticks_between_them():
    (axes,) = draw_curves({'mean_recall': [(1, 60.0), (2, 65.0), (3, 63.0)]}, 1).axes
    assert [tick for tick in axes.get_xticks() if 1 <= tick <= 3] == [1, 2, 3]


def test_deletion_curves_go_from_no_patch_to_all():
    curves = {'map': [0.8, 0.2, 0.1], 'random order': [0.8, 0.6, 0.5, 0.3, 0.1]}
    (axes,) = draw_deletion(curves).axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert lines == {
        'map': [[0, 0.8], [0.5, 0.2], [1, 0.1]],
        'random order': [[0, 0.8], [0.25, 0.6], [0.5, 0.5], [0.75, 0.3], [1, 0.1]],
    }


def test_a_radar_has_a_spoke_for_each_skill_and_nothing_below_the_centre():
    ways = {'vectors': {'a': 50.0, 'b': 120.0, 'c': -10.0, 'd': 10.0}}
    (axes,) = draw_radar(ways).axes
    (line,) = axes.lines
    angles, radii = line.get_data()
    assert angles == pytest.approx([0, np.pi / 2, np.pi, 3 * np.pi / 2, 0])
    assert radii == pytest.approx([50, 100, 0, 10, 50])
    assert [label.get_text() for label in axes.get_xticklabels()] == ['a', 'b', 'c', 'd']


@pytest.mark.parametrize(
    ('size', 'shown'), [((30_000, 40), (320, 1)), ((100, 640), (50, 320)), ((320, 20), (320, 20))]
)
def test_an_image_of_any_shape_is_shown_small(size, shown, tmp_path):
    Image.new('RGB', size[::-1], 'red').save(tmp_path / 'image.png')
    image = read_thumbnail(str(tmp_path / 'image.png'))
    assert image.shape == (*shown, 3) and (image == (255, 0, 0)).all()


@pytest.mark.parametrize(('side', 'kind'), [(64, 'png'), (256, 'jpeg')])
def test_images_are_encoded_without_a_warning(side, kind, capfd):
    uri = to_uri(np.full((side, side, 3), 40, np.uint8))
    assert uri.startswith(f'data:image/{kind};base64,')
    assert not capfd.readouterr().err  # OpenCV warns of options of another format


def test_aucs_are_dots_of_means_rings_of_groups_and_a_line_of_chance():
    (axes,) = draw_aucs({'S': [0.75, 0.5, 1.0], 'Grad-CAM': [0.25]}).axes
    chance, *points = [line.get_xydata().tolist() for line in axes.lines]
    assert [x for x, _ in chance] == [0.5, 0.5]
    assert points == [[[0.75, 0]], [[0.5, 0], [1.0, 0]], [[0.25, 1]], []]
    assert [label.get_text() for label in axes.get_yticklabels()] == ['S', 'Grad-CAM']
    assert axes.get_xlim() == (0, 1) and axes.yaxis_inverted()
