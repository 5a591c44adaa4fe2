"""Masked image modelling (SimMIM)."""

import math

import torch
from torch import Tensor, nn

from xmodal.registry import MODELS


@MODELS.register_module()
class MIMHead(nn.Module):
    """Predicts the pixels of hidden patches by one linear layer (SimMIM, Xie et al., 2021).

    Squares of ``block`` pixels are hidden together; the ℓ1 loss is taken on hidden pixels of the
    normalised image.

    Args:
        embed_dims: D.
        patch_size: side of a patch, in pixels.
        block: side of a hidden square, in pixels; a multiple of ``patch_size``.
        ratio: share of the squares that are hidden.
        source: where the patches come from: the image stream of the 'fusion' encoder, or the
            'image_encoder'.
    """

    def __init__(
        self,
        embed_dims: int,
        patch_size: int,
        block: int = 32,
        ratio: float = 0.6,
        source: str = 'fusion',
    ) -> None:
        super().__init__()
        if block % patch_size:
            raise ValueError(
                f'heads.mim.block={block} must be a multiple of the patch, {patch_size}'
            )
        if source not in ('fusion', 'image_encoder'):
            raise ValueError(f"heads.mim.source='{source}', expected 'fusion' or 'image_encoder'")
        self.patch_size, self.block, self.ratio, self.source = patch_size, block, ratio, source
        self.mask_token = nn.Parameter(torch.zeros(embed_dims))
        nn.init.trunc_normal_(self.mask_token, std=0.02)
        self.decoder = nn.Linear(embed_dims, 3 * patch_size**2)

    def mask(self, images: Tensor) -> Tensor:
        """Draws the patches to hide, (B, M) bool, for images (B, 3, H, W)."""
        batch, _, height, width = images.shape
        rows, columns = math.ceil(height / self.block), math.ceil(width / self.block)
        hidden = math.ceil(rows * columns * self.ratio)
        order = torch.rand(batch, rows * columns, device=images.device).argsort(1)
        squares = (order < hidden).view(batch, rows, columns)
        scale = self.block // self.patch_size
        patches = squares.repeat_interleave(scale, 1).repeat_interleave(scale, 2)
        return patches[:, : height // self.patch_size, : width // self.patch_size].flatten(1)

    def loss(self, patches: Tensor, images: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """ℓ1 between hidden pixels and their prediction.

        Args:
            patches: tokens of the masked image, (B, 1 + M, D).
            images: the whole images, normalised, (B, 3, H, W).
            mask: hidden patches, (B, M) bool.
        """
        size = self.patch_size
        pixels = nn.functional.unfold(images.float(), size, stride=size).transpose(1, 2)
        predicted = self.decoder(patches[:, 1:]).float()
        error = (predicted - pixels).abs().mean(-1)
        return {'loss_mim': (error * mask).sum() / mask.sum()}
