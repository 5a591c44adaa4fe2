"""Figures of T-EMDE's sketches: tokens among the centroids, and scores by size of the sketch."""

import logging
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib import colormaps, patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mmengine.logging import print_log
from torch import nn

from xmodal.models.necks import TEMDE

HALO = [patheffects.withStroke(linewidth=2.5, foreground='white')]


@torch.no_grad()
def assign_words(model: nn.Module, texts: Sequence[str]) -> tuple[np.ndarray | None, list[str]]:
    """Assigns every word of some texts to the centroids of a model's text sketch.

    Returns:
        The soft assignment of each token to each centroid, (T, N, K), and the T words. None and an
        empty list for a model without a text sketch.
    """
    similarity = getattr(model, 'similarity', nn.Identity())
    for name, sketch in similarity.named_modules():
        if isinstance(sketch, TEMDE) and name.rpartition('.')[2].startswith('text'):
            ids, mask = model.data_preprocessor.tokenize(texts)
            assigned = sketch.assign(model.encode_text(ids, mask).embeddings, mask)[mask]
            return assigned.float().cpu().numpy(), model.data_preprocessor.words(ids[mask])
    return None, []


def draw_words(assignments: np.ndarray, words: Sequence[str], labelled: Sequence[str]) -> Figure:
    """Draws tokens in the plane of one partition, with labels for some words (T-EMDE, Fig. 3).

    Args:
        assignments: soft assignment of each token to each of K centroids, (T, K).
        words: the word of each token, T of them.
        labelled: words to label; each label is at the median of the tokens of its word.

    Raises:
        ValueError: if ``words`` and ``assignments`` differ in length, or a labelled word does not
            occur in ``words``.
    """
    missing = sorted(set(labelled) - set(words))
    if len(words) != len(assignments) or missing:
        raise ValueError(
            f'got {len(words)} words for {len(assignments)} tokens'
            + (f'; the words do not contain {", ".join(missing)}' if missing else '')
        )
    figure = Figure(figsize=(6, 5), layout='constrained')
    axes = figure.subplots()
    positions = _draw_tokens(axes, assignments, grey=True)
    tokens = np.asarray(words)
    for word in labelled:
        of_word = positions[tokens == word]
        (dots,) = axes.plot(*of_word.T, 'o', markersize=5, markeredgecolor='white')
        axes.text(
            *np.median(of_word, axis=0),
            word,
            color=dots.get_color(),
            fontsize=9,
            ha='center',
            va='bottom',
            path_effects=HALO,
        )
    return figure


def draw_partitions(assignments: np.ndarray) -> Figure:
    """Draws tokens in the planes of N partitions, one panel each (T-EMDE, Fig. 4).

    Args:
        assignments: soft assignment of each token to each of K centroids, (T, N, K).
    """
    partitions = assignments.shape[1]
    figure = Figure(figsize=(3.6 * partitions, 3.6), layout='constrained')
    for index, axes in enumerate(np.ravel(figure.subplots(1, partitions))):
        _draw_tokens(axes, assignments[:, index])
        axes.set_title(f'partition {index + 1}', loc='left', fontsize=9, color='#555')
    return figure


def draw_sizes(
    scores: Mapping[str, np.ndarray], partitions: Sequence[int], centroids: Sequence[int]
) -> Figure:
    """Draws scores by the size of the sketch, a heat map with numbers each (T-EMDE, Fig. 5).

    Args:
        scores: by name of a metric, (len(partitions), len(centroids)); NaN for sizes without a run.
        partitions: N of each row.
        centroids: K of each column.
    """
    width, height = 1.6 + 0.9 * len(centroids), 1.2 + 0.6 * len(partitions)
    figure = Figure(figsize=(width * len(scores), height), layout='constrained')
    for axes, (name, cells) in zip(
        np.ravel(figure.subplots(1, len(scores))), scores.items(), strict=True
    ):
        image = axes.imshow(cells, cmap='Blues', aspect='auto')
        axes.set_xticks(range(len(centroids)), centroids)
        axes.set_yticks(range(len(partitions)), partitions)
        axes.set(xlabel='K, centroids', ylabel='N, partitions')
        axes.set_title(name, loc='left', fontsize=9, color='#555')
        axes.tick_params(length=0)
        for (row, column), score in np.ndenumerate(cells):
            if np.isfinite(score):
                ink = 'white' if image.norm(score) > 0.6 else 'black'
                text = dict(ha='center', va='center', color=ink, fontsize=8)
                axes.text(column, row, f'{score:.1f}', **text)
    return figure


def project_to_plane(points: np.ndarray) -> tuple[np.ndarray, str]:
    """Projects points (T, C) to the plane with UMAP if it is installed, otherwise with PCA.

    Returns:
        The positions, (T, 2), and the name of the method.
    """
    try:
        import umap
    except ImportError as error:
        print_log(
            f'umap-learn is missing ({error}): tokens are projected to the plane with PCA. For '
            "figures like those of the T-EMDE paper run `pip install 'xmodal[figures]'`",
            'current',
            logging.WARNING,
        )
        return _principal_plane(points), 'PCA'
    return umap.UMAP(n_components=2, random_state=0).fit_transform(points), 'UMAP'


def _principal_plane(points: np.ndarray) -> np.ndarray:
    """Returns the coordinates along the two directions of largest variance."""
    centred = points - points.mean(0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    # The sign of a direction is arbitrary: make its largest component positive.
    largest = np.abs(directions).argmax(1)
    directions *= np.sign(directions[np.arange(len(directions)), largest])[:, None]
    return centred @ directions[:2].T


def _draw_tokens(axes: Axes, assignments: np.ndarray, grey: bool = False) -> np.ndarray:
    """Draws tokens in the colour of their likeliest centroid, and the number of each centroid.

    Args:
        axes: where to draw.
        assignments: (T, K).
        grey: draw all tokens in grey, as a background.

    Returns:
        The positions of the tokens, (T, 2).
    """
    positions, method = project_to_plane(assignments)
    likeliest = assignments.argmax(1)
    palette = colormaps['tab10' if assignments.shape[1] <= 10 else 'tab20']
    colours = '#ccc' if grey else palette(likeliest % palette.N)
    axes.scatter(*positions.T, c=colours, s=6, alpha=0.8, linewidths=0)
    for centroid in np.unique(likeliest):
        centre = np.median(positions[likeliest == centroid], axis=0)
        axes.text(*centre, centroid + 1, fontsize=8, color='#777', path_effects=HALO)
    axes.set_xlabel(method, fontsize=7, color='#777')
    axes.set(xticks=[], yticks=[])
    for side in axes.spines.values():
        side.set_visible(False)
    return positions
