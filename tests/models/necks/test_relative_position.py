"""Relative position within one modality."""

import torch

from xmodal.models.necks.relative_position import RelativeBias


@torch.no_grad()
def test_relative_bias_of_an_image_depends_on_the_offset_alone():
    bias = RelativeBias(num_heads=2, max_offset=1, axes=2)
    torch.nn.init.normal_(bias.table)
    actual = bias((3, 4))
    assert actual.shape == (1, 2, 13, 13)
    cells = [(row, column) for row in range(3) for column in range(4)]
    by_offset = {}
    for a, here in enumerate(cells):
        for b, there in enumerate(cells):
            offset = tuple(max(-1, min(1, x - y)) for x, y in zip(here, there, strict=True))
            by_offset.setdefault(offset, []).append(actual[0, :, 1 + a, 1 + b])
    values = {offset: torch.stack(group) for offset, group in by_offset.items()}
    assert all((group == group[0]).all() for group in values.values())
    assert len({tuple(group[0].tolist()) for group in values.values()}) == 9
    cls = torch.cat([actual[0, :, 0], actual[0, :, :, 0]], -1)
    assert (cls == cls[:, :1]).all()


@torch.no_grad()
def test_relative_bias_of_a_text_tells_left_from_right():
    bias = RelativeBias(num_heads=1, max_offset=2, axes=1)
    torch.nn.init.normal_(bias.table)
    actual = bias((5,))[0, 0, 1:, 1:]
    for a in range(5):
        for b in range(5):
            assert actual[a, b] == bias.table[0, max(-2, min(2, a - b)) + 2]
