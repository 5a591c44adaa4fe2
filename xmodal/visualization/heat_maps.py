"""Heat maps of the report: Grad-CAM and anchors of some words on their image."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor, nn

from xmodal.structures import Encoded
from xmodal.visualization.anchors import anchor_maps
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
    """

    image: str
    text: str
    whole: str
    words: list[tuple[str, str, str]]


def draw_heat_maps(model: nn.Module, encode: Encode, path: str, text: str) -> HeatMaps:
    """Draws the heat maps of the whole text and of four of its words.

    Args:
        model: a model with an ``itm`` head.
        encode: encodes image files and texts for the model.
        path: the image file.
        text: the text.
    """
    encoded_image, encoded_text = encode([path], [text])
    words, whole = grad_cam(model, encoded_image.tokens, encoded_text.tokens)
    anchors = anchor_maps(model, encoded_image.tokens, encoded_text.tokens)
    image = read_thumbnail(path)
    tokenizer = model.data_preprocessor.tokenizer
    ids = model.data_preprocessor.tokenize([text])[0][0]
    pieces = tokenizer.convert_ids_to_tokens(ids.tolist())
    drawn = []
    for index in choose_words(pieces, words[0]):
        anchor_map = ''
        if anchors is not None:
            share = anchors[0][0, index].float().mean(-1)
            anchor_map = to_uri(highlight_patches(image, share.cpu().numpy()))
        heat_map = to_uri(overlay_heatmap(image, words[0, index].float().cpu().numpy()))
        drawn.append((pieces[index], heat_map, anchor_map))
    whole_map = to_uri(overlay_heatmap(image, whole[0].float().cpu().numpy()))
    return HeatMaps(to_uri(image), text, whole_map, drawn)


def choose_words(pieces: list[str], maps: Tensor, count: int = 4) -> list[int]:
    """Returns the indices of the words that matter most to the match, in the order of the text.

    Args:
        pieces: word pieces of a text, including special ones.
        maps: (1 + N, h, w).
        count: maximal number of words.
    """
    first = {}
    for index, piece in enumerate(pieces):
        if piece[0] not in '[#' and piece.isalpha() and piece not in FUNCTION_WORDS:
            first.setdefault(piece, index)
    indices = sorted(first.values(), key=lambda index: -float(maps[index].sum()))
    return sorted(indices[:count])
