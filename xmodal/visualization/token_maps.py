"""Maps of words and of texts over the tokens of an image, to be compared with true boxes."""

from torch import Tensor, nn

from xmodal.structures import Tokens
from xmodal.visualization.anchors import mean_of_words
from xmodal.visualization.grad_cam import layer_name, token_grad_cam
from xmodal.visualization.patch_maps import mean_over_tokens

SIMILARITY, NEARNESS = 'the similarity S', 'the nearness -P'


def word_maps(model: nn.Module, image: Tokens, text: Tokens) -> dict[str, Tensor]:
    """The maps of words: S_G of Eq. 3, -P of Eq. 7, and Grad-CAM of each layer.

    A model has those that its position and its heads give: without similarities neither S nor -P,
    without a matching head no Grad-CAM.

    Args:
        model: in eval mode.
        image: patches (B, 1 + M, D), or regions (B, M, D).
        text: (B, 1 + N, D).

    Returns:
        By name, (B, M, N, G), and (B, M, N) for Grad-CAM; higher is nearer, and -inf is where no
        anchor reaches. In the last layer only [CLS] has Grad-CAM, so that it is left out.
    """
    maps = {name: values[:, :, 1:] for name, values in _relation_maps(model, image, text).items()}
    heat = _grad_cams(model, image, text)[:-1]
    return maps | {name: values[:, 1:].transpose(1, 2) for name, values in heat}


def text_maps(model: nn.Module, image: Tokens, text: Tokens) -> dict[str, Tensor]:
    """The maps of whole texts, as those that ground them: means of the maps of their words.

    As in :func:`similarity_map`, the words of S and -P include [SEP] and no [CLS]. A patch that no
    anchor of a word reaches is as far from it as the farthest that one of the text reaches. Those
    of Grad-CAM are all tokens, as in :func:`grad_cam`, and so the last layer has a map, too.

    Args:
        model: in eval mode.
        image: patches (B, 1 + M, D), or regions (B, M, D).
        text: (B, 1 + N, D).

    Returns:
        By name, (B, M, G), and (B, M) for Grad-CAM; higher is nearer.
    """
    maps = {}
    for name, values in _relation_maps(model, image, text).items():
        lowest = values.masked_fill(values.isinf(), 0).flatten(1).amin(1)
        finite = values.where(values.isfinite(), lowest[:, None, None, None])
        maps[name] = mean_of_words(finite, text)
    heat = _grad_cams(model, image, text)
    return maps | {name: mean_over_tokens(values, text) for name, values in heat}


def _first(model: nn.Module) -> int:
    """The index of an image's first token that has a place: patches come after [CLS]."""
    return int(model.backbone.image_encoder.has_cls)


def _relation_maps(model: nn.Module, image: Tokens, text: Tokens) -> dict[str, Tensor]:
    """S_G and -P, (B, M, 1 + N, G); none of a position without similarities."""
    relation = model.relate(image, text)
    if relation is None or relation.similarity is None:
        return {}
    maps = {SIMILARITY: relation.similarity}
    if relation.distance is not None:
        maps[NEARNESS] = -relation.distance
    return {name: values[:, _first(model) :] for name, values in maps.items()}


def _grad_cams(model: nn.Module, image: Tokens, text: Tokens) -> list[tuple[str, Tensor]]:
    """Name and Grad-CAM of each fusion layer, (B, 1 + N, M); none without a matching head."""
    if model.matching_head is None:
        return []
    depth = model.backbone.fusion.depth
    return [
        (
            f'Grad-CAM, {layer_name(depth, layer)}',
            token_grad_cam(model, image, text, layer)[..., _first(model) :],
        )
        for layer in range(depth)
    ]
