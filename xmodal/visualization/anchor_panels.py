"""Anchors of ACE-RPE drawn on the image."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from xmodal.visualization.anchors import WordAnchors
from xmodal.visualization.figures import highlight_patches

ANCHOR_COLOUR, WORD_COLOUR = '#d12f2f', '#555'
MAX_COLUMNS = 6


def draw_anchors(image: np.ndarray, words: Sequence[WordAnchors]) -> Figure:
    """Draws the anchors of each word: a panel a word, with the word above in red if it has any.

    The brightness of a patch is the share of groups in which it is an anchor of the word, and the
    number is the mean over the patches.

    Args:
        image: RGB (H, W, 3), uint8.
        words: of :meth:`xmodal.apis.Inferencer.anchors`.
    """
    columns = min(len(words), MAX_COLUMNS)
    rows = -(-len(words) // columns)
    figure = Figure(figsize=(1.6 * columns, 1.8 * rows), layout='constrained')
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in panels:
        axes.set_axis_off()
    for axes, word in zip(panels, words, strict=False):
        axes.imshow(highlight_patches(image, word.share))
        colour = ANCHOR_COLOUR if word.is_anchor else WORD_COLOUR
        axes.set_title(f'{word.word}  {word.share.mean():.0%}', fontsize=9, color=colour)
    return figure
