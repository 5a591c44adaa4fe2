"""Grad-CAM on the fusion encoder's cross-attention."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from xmodal.structures import Tokens


def grad_cam(
    model: nn.Module, image: Tokens, text: Tokens, layer: int | None = None
) -> tuple[Tensor, Tensor]:
    """Which patches made each word say that the image and the text match.

    Attention of words to patches times the positive part of the matching logit's gradient on it,
    mean over the heads (Selvaraju et al., 2017; ALBEF, Sec. 6). Gradients are recorded from that
    attention on alone, so that neither the encoders nor the layers below take memory for them, and
    weights may be frozen. A pair's maps do not depend on the others of the batch.

    Args:
        model: in eval mode; has a ``backbone`` and an ``itm`` head.
        image: (B, 1 + M, D) with a grid of h × w = M patches.
        text: (B, 1 + N, D).
        layer: of the fusion encoder; None for its third of six, as ALBEF, or the like.

    Returns:
        Maps of the words, (B, 1 + N, h, w), [CLS] first; and of the whole text, their mean over
        the real tokens, (B, h, w). All at least 0.

    Raises:
        ValueError: when the model has no ``itm`` head.
    """
    if 'itm' not in model.heads:
        raise ValueError("Grad-CAM needs the matching logit: the model has no head 'itm'")
    backbone = model.backbone
    number = (backbone.fusion.depth - 1) // 2 if layer is None else layer
    with _gradients_from(backbone.fusion.layers[number].cross_attention):
        fused = backbone.fuse(image, text, need_image=False, need_attentions=True)
        attention = fused.attentions[number].text_to_image
        logits = model.heads['itm'](fused.text_tokens).float()
        (gradient,) = torch.autograd.grad((logits[:, 1] - logits[:, 0]).sum(), attention)
    maps = (attention.detach() * gradient.clamp(min=0)).mean(1)[..., 1:]
    words = maps.unflatten(-1, image.grid_size)
    real = text.attention_mask.to(words.dtype)[..., None, None]
    return words, (words * real).sum(1) / real.sum(1)


@contextmanager
def _gradients_from(attention: nn.Module) -> Iterator[None]:
    """Within it gradients are recorded from the first call of an attention on, and not before."""

    def begin(module: nn.Module, arguments: tuple) -> tuple:
        handle.remove()
        torch.set_grad_enabled(True)  # until the end of no_grad below
        asking, *rest = arguments
        return (asking._replace(query=asking.query.detach().requires_grad_()), *rest)

    handle = attention.register_forward_pre_hook(begin)
    try:
        with torch.no_grad():
            yield
    finally:
        handle.remove()
