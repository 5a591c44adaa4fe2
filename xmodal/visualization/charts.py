"""Charts of the report and of model cards."""

import io
import json
from collections import defaultdict
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOUR = '#3b6fd4'


def read_scalars(work_dir: Path) -> dict[str, list[tuple[int, float]]]:
    """Reads the logged scalars of a run: name to (step, value), in order of steps.

    A step is an iteration, and an epoch for the metrics of a validation. A run that is resumed, or
    begins again, logs some steps again: its log takes the place of the former from there on, also
    of steps that it does not reach, since it stops earlier or has longer batches.

    Raises:
        FileNotFoundError: if the folder contains no log.
    """
    files = sorted(work_dir.glob('*/vis_data/scalars.json'))
    if not files:
        raise FileNotFoundError(
            f'no log found in {work_dir}: expected */vis_data/scalars.json in the work_dir of a run'
        )
    scalars: dict[str, dict[int, float]] = {}
    for file in files:
        of_file: dict[str, dict[int, float]] = defaultdict(dict)
        # A killed run leaves half a line at the end.
        for line in file.read_text().rpartition('\n')[0].splitlines():
            row = json.loads(line)
            for name, value in row.items():
                if isinstance(value, int | float) and 'step' in row:
                    of_file[name][row['step']] = value
        for name, points in of_file.items():
            former, start = scalars.get(name, {}).items(), min(points)
            scalars[name] = {step: value for step, value in former if step < start} | points
    return {name: sorted(points.items()) for name, points in scalars.items()}


def select_curves(
    scalars: dict[str, list[tuple[int, float]]],
) -> dict[str, list[tuple[int, float]]]:
    """Returns what a training is judged by, of all that it logs: losses first, then statistics."""
    parts = ('loss', 'mean_recall', 'accuracy', 'auc', 'share', 'hinge', 'temperature', 'lr')
    names = [name for name in sorted(scalars) if not name.startswith('base_')]
    order = dict.fromkeys(name for part in parts for name in names if part in name)
    return {name: scalars[name] for name in order if len(scalars[name]) > 1}


def draw_curves(curves: dict[str, list[tuple[int, float]]], columns: int = 3) -> Figure:
    """Draws small curves over the steps of :func:`read_scalars`, side by side."""
    rows = -(-len(curves) // columns)
    figure = Figure(figsize=(3.4 * columns, 1.9 * rows), layout='constrained')
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for (name, points), axes in zip(curves.items(), panels, strict=False):
        axes.plot(*zip(*points, strict=True), color=COLOUR, linewidth=1.6)
        axes.grid(axis='y', color='#ddd', linewidth=0.6)
        axes.xaxis.get_major_locator().set_params(integer=True)  # no half epochs
        style_axes(axes, name)
    for axes in panels:  # those left over
        axes.set_visible(False)
    return figure


def style_axes(axes: Axes, title: str = '', loc: str = 'left') -> None:
    """A small grey title and labels, without ticks and without a frame."""
    axes.set_title(title, loc=loc, fontsize=9, color='#555')
    axes.tick_params(labelsize=7, colors='#777', length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def draw_scales(records: list[dict]) -> list[Figure]:
    """Draws how much the token types are used: one figure for each of their LayerScales.

    Left: mean and maximum of |γ|. Right: ‖γ ⊙ t‖ / ‖H‖ of both modalities. Both over the
    iterations.

    Args:
        records: written by ``LayerScaleStatsHook``.
    """
    figures = []
    for name in records[-1]['scales'] if records else ():
        figure = Figure(figsize=(7.2, 2.2), layout='constrained')
        panels = (('mean_abs', 'max_abs'), ('share_text', 'share_image'))
        for axes, keys in zip(figure.subplots(1, 2), panels, strict=True):
            for key in keys:
                points = [(r['iteration'], r['scales'][name].get(key)) for r in records]
                points = [point for point in points if point[1]]
                if points:
                    axes.plot(*zip(*points, strict=True), label=key.replace('_', ' '))
            axes.set_yscale('log')
            style_axes(axes, name)
            if axes.lines:
                axes.legend(fontsize=7, frameon=False)
        figures.append(figure)
    return figures


def draw_radar(ways: dict[str, dict[str, float]]) -> Figure:
    """Draws how much of the attainable a model reaches, a spoke for each skill.

    Args:
        ways: by the way to score, the share of each skill in percent. A share below 0, worse than
            chance, is drawn at the centre.
    """
    skills = list(next(iter(ways.values())))
    angles = 2 * np.pi * np.arange(len(skills)) / len(skills)
    figure = Figure(figsize=(4.6, 3.6), layout='constrained')
    axes = figure.add_subplot(projection='polar')
    for (way, shares), colour in zip(ways.items(), (COLOUR, '#e08a1e'), strict=False):
        radii = np.clip([shares[skill] for skill in skills], 0, 100)
        closed = np.append(angles, angles[0]), np.append(radii, radii[0])
        axes.plot(*closed, color=colour, linewidth=1.6, label=f'by {way}')
        axes.fill(*closed, color=colour, alpha=0.12)
    axes.set_xticks(angles, skills, fontsize=9, color='#555')
    axes.set_yticks([25, 50, 75, 100], ['', '50', '', '100'], fontsize=7, color='#777')
    axes.set_ylim(0, 100)
    axes.grid(color='#ddd', linewidth=0.6)
    axes.spines['polar'].set_color('#ddd')
    axes.legend(fontsize=8, frameon=False, loc='lower left', bbox_to_anchor=(-0.35, -0.1))
    return figure


def draw_aucs(aucs: dict[str, list[float]]) -> Figure:
    """Draws the area under the ROC curve of maps, a row for each, with chance as a line.

    Args:
        aucs: by the name of a map, that of the mean of its groups as a dot, and then that of each
            group as a ring.
    """
    figure = Figure(figsize=(4.6, 0.7 + 0.36 * len(aucs)), layout='constrained')
    axes = figure.subplots()
    style_axes(axes)
    axes.axvline(0.5, color='#999', linewidth=1, linestyle='--')
    for row, (auc, *groups) in enumerate(aucs.values()):
        axes.plot([auc], [row], 'o', markersize=8, color=COLOUR, alpha=0.5)
        axes.plot(groups, [row] * len(groups), 'o', markersize=5, color='#333', fillstyle='none')
    axes.set_yticks(range(len(aucs)), list(aucs), fontsize=9, color='#555')
    axes.set_ylim(len(aucs) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1], ['0', '0.5, chance', '1'])
    return figure


def draw_deletion(curves: dict[str, list[float]]) -> Figure:
    """Draws how fast a match is lost while patches are deleted, a line for each order.

    Args:
        curves: by the name of what ranks the patches, the mean probability of a match at even
            steps from no patch to all.
    """
    figure = Figure(figsize=(4.6, 3.0), layout='constrained')
    axes = figure.subplots()
    style_axes(axes)
    for name, curve in curves.items():
        axes.plot(np.linspace(0, 1, len(curve)), curve, linewidth=1.4, label=name)
    axes.set_xlabel('share of deleted patches', fontsize=8, color='#555')
    axes.set_ylabel('probability of a match', fontsize=8, color='#555')
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7, frameon=False)
    return figure


def to_svg(figure: Figure) -> str:
    """Renders a figure as SVG that can be embedded in a page."""
    buffer = io.StringIO()
    with matplotlib.rc_context({'svg.fonttype': 'path', 'svg.hashsalt': 'xmodal'}):
        figure.savefig(buffer, format='svg', transparent=True, metadata={'Date': None})
    text = buffer.getvalue()
    return text[text.index('<svg') :]
