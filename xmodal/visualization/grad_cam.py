"""Grad-CAM on the fusion encoder's cross-attention."""

import torch
from torch import Tensor, nn

from xmodal.structures import Tokens


def grad_cam(
    model: nn.Module, image: Tokens, text: Tokens, layer: int | None = None
) -> tuple[Tensor, Tensor]:
    """Which patches made each word say that the image and the text match.

    Attention of words to patches times the positive part of the matching logit's gradient on it,
    mean over the heads (Selvaraju et al., 2017; ALBEF, Sec. 6).

    Args:
        model: has ``fuse`` and an ``itm`` head.
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
    with torch.enable_grad():
        # Frozen weights and encoded tokens alike: the graph begins here.
        image = image._replace(embeddings=image.embeddings.detach().requires_grad_())
        fused = model.fuse(image, text, need_attentions=True)
        layer = (len(fused.attentions) - 1) // 2 if layer is None else layer
        attention = fused.attentions[layer].text_to_image
        logits = model.heads['itm'](fused.text_tokens).float()
        (gradient,) = torch.autograd.grad((logits[:, 1] - logits[:, 0]).sum(), attention)
    maps = (attention.detach() * gradient.clamp(min=0)).mean(1)[..., 1:]
    words = maps.unflatten(-1, image.grid_size)
    real = text.attention_mask.to(words.dtype)[..., None, None]
    return words, (words * real).sum(1) / real.sum(1)
