"""Pictures of T-EMDE's sketches: where tokens lie among the centroids, and what sizes score."""

import logging
from collections.abc import Sequence

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
    """Soft assignments of the words of texts in a matching model's sketch of captions.

    Returns:
        The share of each word in each centroid, (T, N, K), and what each word is, T of them; None
        and nothing for a model without such a sketch.
    """
    similarity = getattr(model, 'similarity', nn.Identity())
    for name, sketch in similarity.named_modules():
        if isinstance(sketch, TEMDE) and name.rpartition('.')[2].startswith('text'):
            ids, mask = model.data_preprocessor.tokenize(texts)
            assigned = sketch.assign(model.encode_text(ids, mask).embeddings, mask)[mask]
            return assigned.float().cpu().numpy(), model.data_preprocessor.words(ids[mask])
    return None, []


def draw_words(assignments: np.ndarray, words: Sequence[str], shown: Sequence[str]) -> Figure:
    """Tokens in the plane of one partition, some words annotated (T-EMDE, Fig. 3).

    Args:
        assignments: share of each token in each of K regions, (T, K).
        words: what each token is, T of them.
        shown: words to annotate; each is named in the middle of its tokens.

    Raises:
        ValueError: when there are not as many words as tokens, or a word to be shown is none of
            them.
    """
    missing = sorted(set(shown) - set(words))
    if len(words) != len(assignments) or missing:
        raise ValueError(
            f'{len(words)} words for {len(assignments)} tokens'
            + (f', and none of them is {", ".join(missing)}' if missing else '')
        )
    figure = Figure(figsize=(6, 5), layout='constrained')
    axes = figure.subplots()
    places = _draw_tokens(axes, assignments, grey=True)
    tokens = np.asarray(words)
    for word in shown:
        own = places[tokens == word]
        (dots,) = axes.plot(*own.T, 'o', markersize=5, markeredgecolor='white')
        axes.text(
            *np.median(own, axis=0),
            word,
            color=dots.get_color(),
            fontsize=9,
            ha='center',
            va='bottom',
            path_effects=HALO,
        )
    return figure


def draw_partitions(assignments: np.ndarray) -> Figure:
    """Tokens in the planes of several partitions, side by side (T-EMDE, Fig. 4).

    Args:
        assignments: share of each token in each of K regions, (T, N, K), a panel a partition.
    """
    partitions = assignments.shape[1]
    figure = Figure(figsize=(3.6 * partitions, 3.6), layout='constrained')
    for number, axes in enumerate(np.ravel(figure.subplots(1, partitions)), 1):
        _draw_tokens(axes, assignments[:, number - 1])
        axes.set_title(f'partition {number}', loc='left', fontsize=9, color='#555')
    return figure


def draw_sizes(
    scores: np.ndarray, partitions: Sequence[int], centroids: Sequence[int], name: str = 'rsum'
) -> Figure:
    """A score over the sizes of a sketch, as a heat map with numbers (T-EMDE, Fig. 5).

    Args:
        scores: (len(partitions), len(centroids)); NaN for what was not run.
        partitions: N of each row.
        centroids: K of each column.
        name: of the score.
    """
    figure = Figure(
        figsize=(1.6 + 0.9 * len(centroids), 1.2 + 0.6 * len(partitions)), layout='constrained'
    )
    axes = figure.subplots()
    image = axes.imshow(scores, cmap='Blues', aspect='auto')
    axes.set_xticks(range(len(centroids)), centroids)
    axes.set_yticks(range(len(partitions)), partitions)
    axes.set(xlabel='K, centroids', ylabel='N, partitions')
    axes.set_title(name, loc='left', fontsize=9, color='#555')
    axes.tick_params(length=0)
    for (row, column), score in np.ndenumerate(scores):
        if np.isfinite(score):
            ink = 'white' if image.norm(score) > 0.6 else 'black'
            axes.text(column, row, f'{score:.1f}', ha='center', va='center', color=ink, fontsize=8)
    return figure


def project_to_plane(points: np.ndarray, seed: int = 0) -> tuple[np.ndarray, str]:
    """Places points (T, C) in the plane, (T, 2): by UMAP where it is installed, else by PCA.

    Returns:
        The places, and the method's name.
    """
    try:
        import umap
    except ImportError:
        print_log(
            'umap-learn is not installed: tokens are projected to the plane by PCA instead '
            "(`pip install -e '.[pictures]'` for pictures as in the T-EMDE paper)",
            'current',
            logging.WARNING,
        )
        return _principal_plane(points), 'PCA'
    return umap.UMAP(n_components=2, random_state=seed).fit_transform(points), 'UMAP'


def _principal_plane(points: np.ndarray) -> np.ndarray:
    """Coordinates along the two directions of largest variance."""
    centred = points - points.mean(0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    # The sign of a direction is arbitrary: its largest part points up.
    largest = np.abs(directions).argmax(1)
    directions *= np.sign(directions[np.arange(len(directions)), largest])[:, None]
    return centred @ directions[:2].T


def _draw_tokens(axes: Axes, assignments: np.ndarray, grey: bool = False) -> np.ndarray:
    """Draws tokens in the colour of their likeliest centroid, whose number stands in their middle.

    Args:
        axes: to draw on.
        assignments: (T, K).
        grey: leave the colours to what is drawn on top.

    Returns:
        The tokens' places, (T, 2).
    """
    places, method = project_to_plane(assignments)
    likeliest = assignments.argmax(1)
    palette = colormaps['tab10' if assignments.shape[1] <= 10 else 'tab20']
    colours = '#ccc' if grey else palette(likeliest % palette.N)
    axes.scatter(*places.T, c=colours, s=6, alpha=0.8, linewidths=0)
    for centroid in np.unique(likeliest):
        middle = np.median(places[likeliest == centroid], axis=0)
        axes.text(*middle, centroid + 1, fontsize=8, color='#777', path_effects=HALO)
    axes.set_xlabel(method, fontsize=7, color='#777')
    axes.set(xticks=[], yticks=[])
    for side in axes.spines.values():
        side.set_visible(False)
    return places
