"""Heat maps of the report: Grad-CAM and anchors of some words on their image."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor, nn

from xmodal.structures import Encoded
from xmodal.visualization.anchors import word_anchors
from xmodal.visualization.figures import highlight_patches, overlay_heatmap, to_uri
from xmodal.visualization.grad_cam import grad_cam
from xmodal.visualization.retrieval_examples import read_thumbnail

# Words that no patch shows.
FUNCTION_WORDS = frozenset(
    'a an the is are of to in on at by for with and or that which there it its his her their can '
    'be seen picture lies lie this while as from'.split()
)

# Encodes image files and texts: xmodal.apis.Inferencer.encode.
Encode = Callable[[Sequence[str], Sequence[str]], tuple[Encoded, Encoded]]


class HeatMaps(NamedTuple):
    """The heat maps of one image and its text; images are data URIs.

    Attributes:
        image: the image.
        text: the text.
        whole: Grad-CAM of the whole text.
        words: (word, Grad-CAM, anchors) of some words; anchors are '' if the model has none.
        text_anchors: (word piece, whether it is an anchor) of the whole text, as Fig. 4 of ACE-RPE
            prints it; empty if the model has no anchors.
    """

    image: str
    text: str
    whole: str
    words: list[tuple[str, str, str]]
    text_anchors: list[tuple[str, bool]]


def draw_heat_maps(
    model: nn.Module, encode: Encode, path: str, text: str, layer: int | None = None
) -> HeatMaps:
    """Draws the heat maps of the whole text and of four of its words.

    Args:
        model: a model with an ``itm`` head.
        encode: encodes image files and texts for the model.
        path: the image file.
        text: the text.
        layer: index of the fusion layer of Grad-CAM, see :func:`layer_index`.
    """
    encoded_image, encoded_text = encode([path], [text])
    words, whole = grad_cam(model, encoded_image.tokens, encoded_text.tokens, layer)
    image = read_thumbnail(path)
    preprocessor = model.data_preprocessor
    pieces = preprocessor.words(preprocessor.tokenize([text])[0][0])
    anchors = word_anchors(model, encoded_image.tokens, encoded_text.tokens, pieces)
    drawn = []
    for index in choose_words(pieces, words[0]):
        anchor_map = to_uri(highlight_patches(image, anchors[index].share)) if anchors else ''
        heat_map = to_uri(overlay_heatmap(image, words[0, index].float().cpu().numpy()))
        drawn.append((pieces[index], heat_map, anchor_map))
    whole_map = to_uri(overlay_heatmap(image, whole[0].float().cpu().numpy()))
    text_anchors = [(x.word, x.is_anchor) for x in anchors if x.word not in ('[CLS]', '[SEP]')]
    return HeatMaps(to_uri(image), text, whole_map, drawn, text_anchors)


def choose_words(pieces: list[str], maps: Tensor) -> list[int]:
    """Returns the indices of the four words that matter most to the match, in the text's order.

    Args:
        pieces: word pieces of a text, including special ones.
        maps: (1 + N, h, w).
    """
    first = {}
    for index, piece in enumerate(pieces):
        if piece[0] not in '[#' and piece.isalpha() and piece not in FUNCTION_WORDS:
            first.setdefault(piece, index)
    indices = sorted(first.values(), key=lambda index: -float(maps[index].sum()))
    return sorted(indices[:4])
