"""Forward FLOPs by PyTorch's counter: two operations a multiply-add, nothing elementwise."""

from collections.abc import Callable

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from xmodal.models.albef import AlbefBackbone
from xmodal.models.necks import NoPosition


def count(function: Callable, *args) -> tuple[object, int]:
    """The result of a call and its FLOPs."""
    # Attention as plain matrix products, which the counter knows on every device.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        result = function(*args)
    return result, counter.get_total_flops()


def count_parts(backbone: AlbefBackbone, image_size: int, num_words: int) -> dict[str, int]:
    """FLOPs of a pair by part.

    Args:
        backbone: the encoders, the position and the fusion encoder.
        image_size: height and width in pixels.
        num_words: word pieces of the text, [CLS] included.
    """
    # The counter follows modules by hooks, which parameters without gradients need no autograd for.
    backbone.eval().requires_grad_(False)
    word_ids = torch.zeros(1, num_words, dtype=torch.int64)
    image, of_image = count(backbone.encode_image, torch.zeros(1, 3, image_size, image_size))
    text, of_text = count(backbone.encode_text, word_ids, torch.ones_like(word_ids).bool())
    tokens = image.tokens, text.tokens
    fusion = backbone.fusion
    none = NoPosition(fusion.depth, fusion.embed_dims, fusion.num_heads)
    _, of_fusion = count(fusion, *tokens, none)
    _, with_position = count(fusion, *tokens, backbone.position)
    return {
        'image encoder': of_image,
        'text encoder': of_text,
        'fusion encoder': of_fusion,
        'without position': of_image + of_text + of_fusion,
        'position': with_position - of_fusion,
        'total': of_image + of_text + with_position,
    }
