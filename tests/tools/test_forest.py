"""Verdicts, drawn: what is in the figure is what the comparison says."""

import sys

import numpy as np
import pytest
from tables_on_disk import make_plan, write_row, write_table

from tools import ablate
from xmodal.ablation import compare, reference_row
from xmodal.ablation.forest import COLOURS, draw_forest


@pytest.fixture
def found(tmp_path):
    """Two rows against `plain`: one is five points better, one is the same."""
    plan = make_plan(tmp_path)
    for name, shift in (('plain', 0), ('idea', 5), ('third', 0)):
        write_row(plan, name, shift)
    reference = reference_row(plan, 'plain')
    return compare(plan, reference, plan.table.columns[:1], margin=1)


def test_dots_lines_and_band_are_difference_interval_and_margin(found):
    (axes,) = draw_forest({'score': found}).axes
    assert axes.get_title(loc='right') == 'score'
    assert [label.get_text() for label in axes.get_yticklabels()] == ['The idea', 'third']
    for place, (comparison, drawn) in enumerate(zip(found, axes.containers, strict=True)):
        dot, _, (line,) = drawn
        mean, half_width = comparison.verdict.difference.mean, comparison.verdict.half_width
        assert (*dot.get_xdata(), *dot.get_ydata()) == (mean, place)
        ends = line.get_segments()[0][:, 0]
        assert ends == pytest.approx([mean - half_width, mean + half_width])
        assert dot.get_color() == COLOURS[comparison.verdict.word]
    assert [comparison.verdict.word for comparison in found] == ['better', 'equivalent']
    band = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    assert (band.x0, band.x1) == pytest.approx((-1, 1))
    top, bottom = (axes.transData.transform((0, place))[1] for place in (0, 1))
    assert top > bottom  # rows in the order of the table


def test_the_interval_of_one_seed_crosses_the_panel(tmp_path):
    plan = make_plan(tmp_path, seeds=1)
    for name, shift in (('plain', 0), ('idea', 5), ('third', 0)):
        write_row(plan, name, shift)
    found = compare(plan, reference_row(plan, 'plain'), plan.table.columns[:1], margin=1)
    figure = draw_forest({'score': found})
    figure.canvas.draw()
    (axes,) = figure.axes
    width, _ = figure.get_size_inches() * figure.dpi
    across = [
        line.get_ydata()[0]
        for line in axes.lines
        if np.ptp(line.get_transform().transform(line.get_xydata())[:, 0]) > 0.4 * width
    ]
    assert across == [0, 1]


def test_panels_share_no_axis_and_empty_ones_are_hidden(found):
    figure = draw_forest({f'figure {number}': found for number in range(4)})
    assert [axes.get_visible() for axes in figure.axes] == [True] * 4 + [False] * 2


def test_long_titles_are_whole_and_do_not_meet(found):
    titles = [f'acerpe/photographs_{number}: re-ranked: mean recall' for number in range(3)]
    figure = draw_forest(dict.fromkeys(titles, found))
    figure.canvas.draw()
    drawn = figure.findobj(lambda part: getattr(part, 'get_text', str)().startswith('acerpe/'))
    spans = [title.get_window_extent() for title in drawn]
    assert len(spans) == len(titles)
    edges = [0, *(edge for span in spans for edge in (span.x0, span.x1)), figure.bbox.width]
    assert edges == sorted(edges)


def test_the_command_draws_and_replaces_no_file(tmp_path, monkeypatch, capsys):
    def call(*options):
        command = ['ablate.py', write_table(tmp_path), '--root', tmp_path / 'runs', '--dry-run']
        monkeypatch.setattr(sys, 'argv', [str(part) for part in (*command, *options)])
        ablate.main()

    file = tmp_path / 'verdicts.svg'
    plan = make_plan(tmp_path)
    for run in plan.runs:
        run.claim()
    write_row(plan, 'plain', 0)
    call('--compare', 'plain', '--plot', file)
    assert 'is not drawn: no verdict yet' in capsys.readouterr().out
    write_row(plan, 'idea', 5)
    call('--compare', 'plain', '--plot', file)
    assert file.read_text().startswith('<svg')
    with pytest.raises(FileExistsError, match='--plot=.*verdicts.svg already exists'):
        call('--compare', 'plain', '--plot', file)
    with pytest.raises(SystemExit):
        call('--compare', 'plain', '--plot', tmp_path / 'verdicts.png')
    assert 'expected a name with .svg' in capsys.readouterr().err
