"""Absolute position embeddings on the inputs of a fusion encoder."""

import torch
from timm.layers import resample_abs_pos_embed
from torch import nn

from xmodal.models.necks.position import NoPosition
from xmodal.registry import MODELS
from xmodal.structures import Tokens


class AbsoluteEmbedding(nn.Module):
    """Learned absolute embeddings for words and for a grid of patches.

    Args:
        embed_dims: D.
        grid_size: rows and columns of the image table; other grids are resampled. A region has the
            embedding of the cell that the centre of its box is in.
        max_length: longest text.
    """

    undecayed = ('image_position', 'text_position')

    def __init__(self, embed_dims: int, grid_size: tuple[int, int], max_length: int) -> None:
        super().__init__()
        rows, columns = grid_size
        self.grid_size = (rows, columns)
        self.image_position = nn.Parameter(torch.zeros(1, 1 + rows * columns, embed_dims))
        self.text_position = nn.Parameter(torch.zeros(1, max_length, embed_dims))
        nn.init.trunc_normal_(self.image_position, std=0.02)
        nn.init.trunc_normal_(self.text_position, std=0.02)

    def forward(self, image: Tokens, text: Tokens) -> tuple[Tokens, Tokens]:
        """Adds its position embedding to every token.

        Raises:
            ValueError: for a text longer than the table, and regions without boxes.
        """
        length, longest = text.embeddings.shape[1], self.text_position.shape[1]
        if length > longest:
            raise ValueError(
                f'a text of {length} tokens, but fusion position max_length={longest}: raise it to '
                'at least data_preprocessor.max_length'
            )
        image.require_places()
        position = self.image_position
        if image.boxes is not None:
            rows, columns = image.cells(self.grid_size).unbind(-1)
            position = position[0, 1 + rows * self.grid_size[1] + columns]
        elif image.grid_size != self.grid_size:
            position = resample_abs_pos_embed(
                position, list(image.grid_size), list(self.grid_size), num_prefix_tokens=1
            )
        image = image.with_embeddings(image.embeddings + position)
        text = text.with_embeddings(text.embeddings + self.text_position[:, :length])
        return image, text


@MODELS.register_module(name=['AbsolutePosition', 'ape'])
class AbsolutePosition(NoPosition):
    """Absolute embeddings of each modality, added to the inputs of the fusion encoder.

    Args:
        depth: number of fusion layers.
        embed_dims: D.
        num_heads: heads of a fusion layer.
        grid_size: rows and columns of the image table.
        max_length: longest text.
        **others: of another position that a subclass adds.
    """

    def __init__(
        self,
        depth: int,
        embed_dims: int,
        num_heads: int,
        grid_size: tuple[int, int] = (16, 16),
        max_length: int = 64,
        **others,
    ) -> None:
        super().__init__(depth, embed_dims, num_heads, **others)
        self.max_length = max_length
        self.absolute = AbsoluteEmbedding(embed_dims, grid_size, max_length)

    def embed_inputs(self, image: Tokens, text: Tokens) -> tuple[Tokens, Tokens]:
        """Adds its position embedding to every token."""
        return self.absolute(image, text)
