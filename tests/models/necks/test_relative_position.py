"""Relative position within one modality."""

import torch

from xmodal.models.necks.relative_position import RelativeBias, RelativePosition
from xmodal.structures import Tokens


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


@torch.no_grad()
def test_relative_bias_of_regions_is_that_of_patches_in_their_cells():
    position = RelativePosition(1, 8, num_heads=2, max_image_offset=3)  # a grid of 4 x 4
    torch.nn.init.normal_(position.image_bias[0].table)
    cells = [[(0, 0), (3, 1)], [(2, 2), (2, 2)]]
    corners = torch.tensor(cells).flip(-1) / 4
    image = Tokens(torch.zeros(2, 2, 8), boxes=torch.cat([corners, corners + 0.25], -1))
    actual = position.self_bias(0, image)
    of_patches = position.self_bias(0, Tokens(torch.zeros(1, 17, 8), grid_size=(4, 4)))[0]
    assert actual.shape == (2, 2, 2, 2)
    for row, regions in enumerate(cells):
        for a, (y, x) in enumerate(regions):
            for b, (v, u) in enumerate(regions):
                expected = of_patches[:, 1 + 4 * y + x, 1 + 4 * v + u]
                assert actual[row, :, a, b].equal(expected)
