"""Relative position within each modality, in a fusion encoder's self-attention."""

import torch
from torch import Tensor, nn

from xmodal.models.necks.absolute_position import AbsolutePosition
from xmodal.models.necks.position import NoPosition
from xmodal.registry import MODELS
from xmodal.structures import Tokens


class RelativeBias(nn.Module):
    """Learned bias a head for each offset between two tokens of one modality.

    Offsets further than ``max_offset`` share the last entry, as in Shaw et al. (2018); rows and
    columns of an image are looked up together, as iRPE's product method does (Wu et al., 2021).
    [CLS] has no position: its row and column have a separate entry.

    Args:
        num_heads: heads of the layer.
        max_offset: the largest offset with an entry.
        axes: 1 for a text, 2 for an image.
    """

    undecayed = ('table',)

    def __init__(self, num_heads: int, max_offset: int, axes: int) -> None:
        super().__init__()
        self.max_offset, self.axes = max_offset, axes
        self.table = nn.Parameter(torch.zeros(num_heads, (2 * max_offset + 1) ** axes + 1))

    def forward(self, grid_size: tuple[int, ...]) -> Tensor:
        """Bias (1, heads, L, L) for [CLS] followed by the cells of a grid."""
        device = self.table.device
        cells = torch.cartesian_prod(*(torch.arange(n, device=device) for n in grid_size))
        entries = self._entries(cells.view(-1, self.axes))
        of_cls = self.table.shape[1] - 1
        return self.table[:, nn.functional.pad(entries, (1, 0, 1, 0), value=of_cls)][None]

    def of_regions(self, cells: Tensor) -> Tensor:
        """Bias (B, heads, R, R) for regions in these cells of a grid, (B, R, axes) int64."""
        return self.table[:, self._entries(cells)].transpose(0, 1)

    def _entries(self, cells: Tensor) -> Tensor:
        """The entry of each pair of cells (…, L, axes), (…, L, L) int64."""
        offsets = cells[..., :, None, :] - cells[..., None, :, :]
        offsets = offsets.clamp(-self.max_offset, self.max_offset) + self.max_offset
        if self.axes == 1:
            return offsets[..., 0]
        return offsets[..., 0] * (2 * self.max_offset + 1) + offsets[..., 1]


@MODELS.register_module(name=['RelativePosition', 'rpe'])
class RelativePosition(NoPosition):
    """Relative bias of each modality inside the fusion encoder's self-attention.

    An image may be regions with boxes: the offsets are those of the cells that their centres are
    in, on a grid of ``max_image_offset`` + 1 rows and columns.

    Args:
        depth: number of fusion layers.
        embed_dims: D.
        num_heads: heads of a fusion layer.
        max_text_offset: the largest offset between words with an entry.
        max_image_offset: the largest offset between patches along each axis with an entry.
    """

    def __init__(
        self,
        depth: int,
        embed_dims: int,
        num_heads: int,
        max_text_offset: int = 15,
        max_image_offset: int = 15,
    ) -> None:
        super().__init__(depth, embed_dims, num_heads)
        self.text_bias = nn.ModuleList(
            RelativeBias(num_heads, max_text_offset, axes=1) for _ in range(depth)
        )
        self.image_bias = nn.ModuleList(
            RelativeBias(num_heads, max_image_offset, axes=2) for _ in range(depth)
        )

    def embed_inputs(self, image: Tokens, text: Tokens) -> tuple[Tokens, Tokens]:
        """Leaves them as they are.

        Raises:
            ValueError: for regions without boxes, which would be taken for a text.
        """
        image.require_places()
        return image, text

    def self_bias(self, layer: int, tokens: Tokens) -> Tensor:
        """Bias of the layer for these tokens, (B or 1, heads, L, L)."""
        if tokens.boxes is not None:
            side = self.image_bias[layer].max_offset + 1
            return self.image_bias[layer].of_regions(tokens.cells((side, side)))
        if tokens.grid_size is None:
            return self.text_bias[layer]((tokens.embeddings.shape[1] - 1,))
        return self.image_bias[layer](tokens.grid_size)


@MODELS.register_module(name=['AbsoluteRelativePosition', 'ape+rpe'])
class AbsoluteRelativePosition(AbsolutePosition, RelativePosition):
    """Absolute embeddings of each modality on the inputs, and relative biases in the layers."""
