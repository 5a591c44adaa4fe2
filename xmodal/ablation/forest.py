"""Verdicts drawn: each difference with its interval, and the margin of equivalence."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import isinf
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from xmodal.ablation.comparison import Comparison
from xmodal.visualization.charts import style_axes, to_svg

COLOURS = dict(better='#2e8b57', worse='#c9472b', equivalent='#3b6fd4', undecided='#999')
_MAX_COLUMNS = 3
_WIDTH, _LINE, _TITLE = 3.6, 0.24, 0.9  # inches
_TITLE_LENGTH = 32  # letters of a line


def draw_forest(panels: Mapping[str, Sequence[Comparison]]) -> Figure:
    """Draws a forest plot: a panel for each figure, a line for each row, in the figure's points.

    The dot is the difference from the reference, the line its interval, which crosses the panel
    where there is one seed. The grey band is the margin within which rows are equivalent.

    Args:
        panels: comparisons that have a verdict, by the title of their panel.
    """
    columns = min(len(panels), _MAX_COLUMNS)
    titles = list(panels)
    lines = [titles[first : first + columns] for first in range(0, len(titles), columns)]
    heights = [_TITLE + _LINE * max(len(panels[title]) for title in line) for line in lines]
    figure = Figure(figsize=(_WIDTH * columns, sum(heights) + 0.4), layout='constrained')
    grid = figure.subplots(len(lines), columns, squeeze=False, height_ratios=heights)
    for axes in grid.flat:
        axes.set_visible(False)
    for line, row in zip(lines, grid, strict=True):
        for title, axes in zip(line, row, strict=False):
            axes.set_visible(True)
            _draw_panel(axes, title, panels[title])
    handles = [Line2D([], [], marker='o', color=c, label=word) for word, c in COLOURS.items()]
    figure.legend(handles=handles, loc='outside lower center', ncols=4, fontsize=8, frameon=False)
    return figure


def _draw_panel(axes: Axes, title: str, comparisons: Sequence[Comparison]) -> None:
    """One figure's differences, the first row at the top."""
    margin = comparisons[0].verdict.margin
    axes.axvspan(-margin, margin, color='#eee', linewidth=0)
    axes.axvline(0, color='#bbb', linewidth=0.8)
    for place, comparison in enumerate(comparisons):
        verdict, style = comparison.verdict, dict(fmt='o', markersize=4, linewidth=1.6)
        colour = COLOURS[verdict.word]
        mean, half_width = verdict.difference.mean, verdict.half_width
        axes.errorbar(mean, place, xerr=half_width, color=colour, **style)
        if isinf(half_width):  # of one seed; an error bar without ends is not drawn
            axes.axhline(place, color=colour, linewidth=style['linewidth'])
    axes.set_yticks(range(len(comparisons)), [comparison.row.label for comparison in comparisons])
    axes.set_ylim(len(comparisons) - 0.4, -0.6)
    # Beside the edge a long title has the space above the labels, and stays in its column.
    table, colon, figure = title.partition(': ')
    lines = f'{table}:\n{figure}' if colon and len(title) > _TITLE_LENGTH else title
    style_axes(axes, lines, loc='right')


def write_forest(file: Path, found: Iterable[tuple[str, Comparison]]) -> bool:
    """Writes :func:`draw_forest` as SVG; whether there is a verdict to draw.

    Args:
        file: to write.
        found: comparisons, each with the title of its panel.
    """
    panels = defaultdict(list)
    for title, comparison in found:
        if comparison.verdict:
            panels[title].append(comparison)
    if panels:
        file.write_text(to_svg(draw_forest(panels)), encoding='utf-8')
    return bool(panels)
