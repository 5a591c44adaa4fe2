"""An image that is fused with texts in turn is projected once."""

import pytest
import torch

from xmodal.models.fusion import FusionEncoder
from xmodal.models.fusion.stream import Stream, keep_projections
from xmodal.models.necks.position import NoPosition
from xmodal.structures import Tokens

POSITION = NoPosition(depth=2, embed_dims=8, num_heads=2)


@torch.no_grad()
@pytest.mark.parametrize(('streams', 'times'), [('text', 1), ('both', 2)])
def test_what_is_fused_in_turn_is_what_is_fused_alone(streams, times):
    fusion = FusionEncoder(2, 8, 2, streams=streams).eval()
    images = [Tokens(torch.randn(1, 5, 8)) for _ in range(2)]
    texts = [Tokens(torch.randn(3, length, 8)) for length in (2, 4)]
    pairs = torch.tensor([[0, 0], [0, 1], [0, 2]])
    expected = [
        fusion(image, text, POSITION, pairs, need_image=False).text_tokens
        for image in images
        for text in texts
    ]
    calls = []
    last = fusion.layers[-1].cross_attention.k_proj
    hook = last.register_forward_hook(lambda _, inputs, __: calls.append(inputs[0].shape[1]))
    actual = []
    for image in images:
        with keep_projections():
            for text in texts:
                fused = fusion(image, text, POSITION, pairs, need_image=False)
                actual.append(fused.text_tokens)
    hook.remove()
    for ours, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    assert calls.count(5) == times * len(images)
    assert Stream.kept is None


@torch.no_grad()
def test_another_image_is_projected_anew():
    fusion = FusionEncoder(2, 8, 2, streams='text').eval()
    text = Tokens(torch.randn(1, 3, 8))
    with keep_projections():
        for _ in range(2):
            image = Tokens(torch.randn(1, 5, 8))
            fused = fusion(image, text, POSITION).text_tokens
    torch.testing.assert_close(fused, fusion(image, text, POSITION).text_tokens)
