"""Position inside a fusion encoder: the plug-in interface, and the positions of one modality.

A position has four places where it can act, all of them optional:

1. ``enter``: once, on the tokens that enter the fusion encoder (absolute embeddings);
2. ``locate``: once a forward pass, what relates words and patches, used by all layers;
3. ``self_bias``: in a layer's self-attention, a bias on the logits (relative position of one
   modality);
4. ``cross_terms``: in a layer's cross-attention, what is added to queries, keys, values and
   logits.

:class:`NoPosition` does nothing in any of them; a plug-in overrides what it needs.
"""

from typing import NamedTuple

import torch
from timm.layers import resample_abs_pos_embed
from torch import Tensor, nn

from xmodal.registry import MODELS
from xmodal.structures import Tokens


class Relation(NamedTuple):
    """What relates the words and the patches of each pair, for all fusion layers.

    Attributes:
        distance: P of Eq. 7, (B, 1 + M, 1 + N, G); +inf where no anchor reaches the pair.
        similarity: S_G of Eq. 3, (B, 1 + M, 1 + N, G); None for positions without one.
        placed: P with a finite value everywhere, (B, 1 + M, 1 + N, C), C being G or 2G.
        image_mean: mean of ``placed`` over the real words, (B, 1 + M, C).
        text_mean: mean of ``placed`` over the patches, (B, 1 + N, C).
    """

    distance: Tensor
    similarity: Tensor | None
    placed: Tensor
    image_mean: Tensor
    text_mean: Tensor


class LowRank(NamedTuple):
    """An addition to tokens, kept as factors: ``features`` (…, C) @ ``weight`` (C, D)."""

    features: Tensor
    weight: Tensor


class CrossTerms(NamedTuple):
    """What a position adds to one cross-attention of Lq queries over Lk keys.

    Attributes:
        query: added to the query tokens before W^Q, features (B, Lq, C).
        key: added to the context tokens before W^K, features (B, Lk, C).
        value: added to the context tokens before W^V, features (B, Lk, C).
        pairs: added to the values, pair by pair, features (B, Lq, Lk, C).
        bias: added to the logits before they are scaled, (B, 1 or heads, Lq, Lk).
    """

    query: LowRank | None = None
    key: LowRank | None = None
    value: LowRank | None = None
    pairs: LowRank | None = None
    bias: Tensor | None = None


@MODELS.register_module(name=['none', 'NoPosition'])
class NoPosition(nn.Module):
    """No position in the fusion encoder, and the base class of every other.

    Args:
        depth: number of fusion layers.
        embed_dims: D, the width of the tokens.
        num_heads: heads of a fusion layer.

    Attributes:
        needs_grid: whether the image must be a grid of patches; False takes regions as well.
    """

    needs_grid = False

    def __init__(self, depth: int, embed_dims: int, num_heads: int) -> None:
        super().__init__()
        self.depth, self.embed_dims, self.num_heads = depth, embed_dims, num_heads

    def embed_inputs(self, image: Tokens, text: Tokens) -> tuple[Tokens, Tokens]:
        """Changes the tokens as they enter the fusion encoder."""
        return image, text

    def relate(self, image: Tokens, text: Tokens) -> Relation | None:
        """Relates words and patches, once a forward pass; sees the encoders' outputs."""
        return None

    def self_bias(self, layer: int, tokens: Tokens) -> Tensor | None:
        """Bias on the logits of a layer's self-attention, (B or 1, heads, L, L)."""
        return None

    def cross_terms(self, layer: int, relation: Relation | None, queries: str) -> CrossTerms:
        """What is added to a layer's cross-attention; ``queries`` is 'text' or 'image'."""
        return CrossTerms()


class AbsoluteEmbedding(nn.Module):
    """Learned absolute embeddings for words and for a grid of patches.

    Args:
        embed_dims: D.
        grid_size: rows and columns of the image table; other grids are resampled.
        max_length: longest text.
    """

    def __init__(self, embed_dims: int, grid_size: tuple[int, int], max_length: int) -> None:
        super().__init__()
        rows, columns = grid_size
        self.grid_size = (rows, columns)
        self.image_position = nn.Parameter(torch.zeros(1, 1 + rows * columns, embed_dims))
        self.text_position = nn.Parameter(torch.zeros(1, max_length, embed_dims))
        nn.init.trunc_normal_(self.image_position, std=0.02)
        nn.init.trunc_normal_(self.text_position, std=0.02)

    def forward(self, image: Tokens, text: Tokens) -> tuple[Tokens, Tokens]:
        """Adds to every token the embedding of its place."""
        length, longest = text.embeddings.shape[1], self.text_position.shape[1]
        if length > longest:
            raise ValueError(
                f'a text of {length} tokens, but fusion position max_length={longest}: raise it to '
                'at least data_preprocessor.max_length'
            )
        position = self.image_position
        if image.grid_size != self.grid_size:
            position = resample_abs_pos_embed(
                position, list(image.grid_size), list(self.grid_size), num_prefix_tokens=1
            )
        image = image._replace(embeddings=image.embeddings + position)
        text = text._replace(embeddings=text.embeddings + self.text_position[:, :length])
        return image, text


class RelativeBias(nn.Module):
    """Learned bias a head for each offset between two tokens of one modality.

    Offsets further than ``max_offset`` share the last entry, as in Shaw et al. (2018); rows and
    columns of an image are looked up together, as iRPE's product method does (Wu et al., 2021).
    [CLS] has no place: its row and column have an entry of their own.

    Args:
        num_heads: heads of the layer.
        max_offset: the largest offset told apart.
        axes: 1 for a text, 2 for an image.
    """

    def __init__(self, num_heads: int, max_offset: int, axes: int) -> None:
        super().__init__()
        self.max_offset, self.axes = max_offset, axes
        self.table = nn.Parameter(torch.zeros(num_heads, (2 * max_offset + 1) ** axes + 1))

    def forward(self, grid_size: tuple[int, ...]) -> Tensor:
        """Bias (1, heads, L, L) for [CLS] followed by the places of a grid."""
        device = self.table.device
        places = torch.cartesian_prod(*(torch.arange(n, device=device) for n in grid_size))
        places = places.view(-1, self.axes)
        offsets = places[:, None] - places[None]
        offsets = offsets.clamp(-self.max_offset, self.max_offset) + self.max_offset
        side = 2 * self.max_offset + 1
        index = offsets[..., 0] if self.axes == 1 else offsets[..., 0] * side + offsets[..., 1]
        index = nn.functional.pad(index, (1, 0, 1, 0), value=side**self.axes)
        return self.table[:, index][None]


@MODELS.register_module(name=['ape', 'AbsolutePosition'])
class AbsolutePosition(NoPosition):
    """Absolute embeddings, each modality its own, added where the fusion encoder begins.

    Args:
        depth: number of fusion layers.
        embed_dims: D.
        num_heads: heads of a fusion layer.
        grid_size: rows and columns of the image table.
        max_length: longest text.
    """

    needs_grid = True

    def __init__(
        self,
        depth: int,
        embed_dims: int,
        num_heads: int,
        grid_size: tuple[int, int] = (16, 16),
        max_length: int = 64,
    ) -> None:
        super().__init__(depth, embed_dims, num_heads)
        self.absolute = AbsoluteEmbedding(embed_dims, grid_size, max_length)

    def embed_inputs(self, image: Tokens, text: Tokens) -> tuple[Tokens, Tokens]:
        """Adds to every token the embedding of its place."""
        return self.absolute(image, text)


@MODELS.register_module(name=['rpe', 'RelativePosition'])
class RelativePosition(NoPosition):
    """Relative bias of each modality inside the fusion encoder's self-attention.

    Args:
        depth: number of fusion layers.
        embed_dims: D.
        num_heads: heads of a fusion layer.
        max_text_offset: the largest offset between words told apart.
        max_image_offset: the largest offset between patches told apart, along each axis.
    """

    needs_grid = True

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

    def self_bias(self, layer: int, tokens: Tokens) -> Tensor:
        """Bias of the layer for these tokens, (1, heads, L, L)."""
        if tokens.grid_size is None:
            return self.text_bias[layer]((tokens.embeddings.shape[1] - 1,))
        return self.image_bias[layer](tokens.grid_size)


@MODELS.register_module(name=['ape+rpe', 'AbsoluteRelativePosition'])
class AbsoluteRelativePosition(RelativePosition):
    """Absolute embeddings at the entrance and relative biases inside, each modality its own.

    Args:
        depth: number of fusion layers.
        embed_dims: D.
        num_heads: heads of a fusion layer.
        grid_size: rows and columns of the image table.
        max_length: longest text.
        **relative: see :class:`RelativePosition`.
    """

    def __init__(
        self,
        depth: int,
        embed_dims: int,
        num_heads: int,
        grid_size: tuple[int, int] = (16, 16),
        max_length: int = 64,
        **relative,
    ) -> None:
        super().__init__(depth, embed_dims, num_heads, **relative)
        self.absolute = AbsoluteEmbedding(embed_dims, grid_size, max_length)

    def embed_inputs(self, image: Tokens, text: Tokens) -> tuple[Tokens, Tokens]:
        """Adds to every token the embedding of its place."""
        return self.absolute(image, text)
