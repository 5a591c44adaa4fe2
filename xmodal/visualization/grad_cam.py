"""Grad-CAM on the fusion encoder's cross-attention."""

import torch
from torch import Tensor, nn

from xmodal.structures import Tokens
from xmodal.visualization.patch_maps import mean_over_tokens, patch_maps


def grad_cam(
    model: nn.Module, image: Tokens, text: Tokens, layer: int | None = None
) -> tuple[Tensor, Tensor]:
    """Computes the patches that each word attends to when the model decides that a pair matches.

    Args:
        model: in eval mode; has a fusion encoder and an ``itm`` head.
        image: patches (B, 1 + M, D), or regions with boxes (B, R, D); see :func:`patch_maps`.
        text: (B, 1 + N, D).
        layer: index of the fusion layer, see :func:`layer_index`.

    Returns:
        Maps of :func:`token_grad_cam`: of every token of the text, (B, 1 + N, h, w), [CLS] first;
        and of the whole text, (B, h, w), the mean over the tokens that are not padding.

    Raises:
        ValueError: if the model has no ``itm`` head, or no such layer.
    """
    words = patch_maps(token_grad_cam(model, image, text, layer), image)
    return words, mean_over_tokens(words, text)


def token_grad_cam(
    model: nn.Module, image: Tokens, text: Tokens, layer: int | None = None
) -> Tensor:
    """Grad-CAM of every token of a text over the tokens of an image.

    The attention of words to patches times the positive part of the gradient of the matching score
    with respect to it, averaged over the heads (Selvaraju et al., 2017; ALBEF, Sec. 6). The score
    is the logit of 'yes', as in ALBEF's ``Grounding.py`` (``ITMHead(score='yes')``). Gradients
    are recorded only from that layer on: the encoders and the layers below need no memory for them,
    and weights may be frozen. The maps of a pair do not depend on the rest of the batch.

    Args:
        model: in eval mode; has a fusion encoder and an ``itm`` head.
        image: patches (B, 1 + M, D), or regions (B, R, D).
        text: (B, 1 + N, D).
        layer: index of the fusion layer, see :func:`layer_index`.

    Returns:
        Non-negative values, (B, 1 + N, 1 + M) or (B, 1 + N, R). In the last layer only those of
        the text's [CLS] are not zero, as the score depends on no other token after it.

    Raises:
        ValueError: if the model has no ``itm`` head, or no such layer.
    """
    model.require_matching_head()
    index = layer_index(model.backbone.fusion.depth, layer)
    with torch.no_grad():
        fused = model.backbone.fuse(
            image, text, need_image=False, need_attentions=True, gradients_from=index
        )
    with torch.enable_grad():
        attention = fused.attentions[index].text_to_image
        logits = model.matching_head(fused.text_tokens).float()
        score = model.matching_head.matching_score(logits)
        (gradient,) = torch.autograd.grad(score.sum(), attention)
    return (attention.detach() * gradient.clamp(min=0)).mean(1)


def layer_index(depth: int, layer: int | None) -> int:
    """Returns the index of a fusion layer, counted from 0.

    Args:
        depth: number of fusion layers.
        layer: the index; a negative one counts from the end, so that -1 is the last layer, which
            Fig. 4 of ACE-RPE shows. None for the third of six layers, or the layer at the same
            relative depth: ALBEF localises with layer 8 of BERT's twelve, counted from 0, whose
            last six are the fusion layers.

    Raises:
        ValueError: if there is no such layer.
    """
    if layer is None:
        return (depth - 1) // 2
    if not -depth <= layer < depth:
        raise ValueError(
            f'layer={layer}, expected {-depth} to {depth - 1}: the number of fusion layers is '
            f'{depth}, and negative ones count from the end'
        )
    return layer % depth


def layer_name(depth: int, layer: int | None = None) -> str:
    """Names the fusion layer of :func:`layer_index` for people, counted from 1."""
    return f'layer {layer_index(depth, layer) + 1} of {depth}'
