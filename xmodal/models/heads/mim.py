"""Masked image modelling (SimMIM)."""

import math

import torch
from torch import Tensor, nn

from xmodal.models.heads.pretrain_head import PretrainHead
from xmodal.models.heads.shares import require_share
from xmodal.registry import MODELS
from xmodal.structures import PretrainStep


@MODELS.register_module()
class MIMHead(PretrainHead):
    """Predicts the pixels of masked patches by one linear layer (SimMIM, Xie et al., 2021).

    Squares of ``block`` pixels are masked together; the ℓ1 loss is taken on masked pixels of the
    normalised image.

    Args:
        embed_dims: D.
        patch_size: side of a patch, in pixels; None for an image encoder that has no patches.
        block: side of a masked square, in pixels; a multiple of ``patch_size``.
        ratio: share of the squares that are masked.
        source: encoder whose patches are decoded: 'fusion', its image stream, or
            'image_encoder'.

    Raises:
        ValueError: for a wrong option, or without a patch size.
    """

    order = 4

    def __init__(
        self,
        embed_dims: int,
        patch_size: int | None = None,
        block: int = 32,
        ratio: float = 0.6,
        source: str = 'fusion',
    ) -> None:
        super().__init__()
        if patch_size is None:
            raise ValueError(
                "heads.mim masks patches of pixels, which the image encoder can't: set "
                'heads.mim=None, or take a ViTImageEncoder'
            )
        if block % patch_size:
            raise ValueError(
                f'heads.mim.block={block} must be a multiple of the patch, '
                f'image_encoder.patch_size={patch_size}'
            )
        if source not in ('fusion', 'image_encoder'):
            raise ValueError(f"heads.mim.source='{source}', expected 'fusion' or 'image_encoder'")
        require_share('heads.mim.ratio', ratio)
        self.patch_size, self.block, self.ratio, self.source = patch_size, block, ratio, source
        self.mask_token = nn.Parameter(torch.zeros(embed_dims))
        nn.init.trunc_normal_(self.mask_token, std=0.02)
        self.decoder = nn.Linear(embed_dims, 3 * patch_size**2)

    def mask_patches(self, images: Tensor) -> Tensor:
        """Samples the patches to mask, (B, M) bool, of images (B, 3, H, W)."""
        batch_size, _, height, width = images.shape
        rows, columns = math.ceil(height / self.block), math.ceil(width / self.block)
        count = math.ceil(rows * columns * self.ratio)
        order = torch.rand(batch_size, rows * columns, device=images.device).argsort(1)
        squares = (order < count).view(batch_size, rows, columns)
        scale = self.block // self.patch_size
        patches = squares.repeat_interleave(scale, 1).repeat_interleave(scale, 2)
        return patches[:, : height // self.patch_size, : width // self.patch_size].flatten(1)

    def check(self, model: nn.Module) -> None:
        """Raises ValueError where patches have another width, or none come out of the source."""
        if model.backbone.image_adapter is not None:
            raise ValueError(
                'heads.mim puts a token of the fusion encoder among patches, which have another '
                'width with backbone.image_adapter: set one of them to None'
            )
        if self.source == 'fusion' and not model.backbone.fusion.has_image_stream:
            raise ValueError(
                "heads.mim.source='fusion' predicts from an image stream, which the fusion encoder "
                "lacks with streams='text': set heads.mim.source='image_encoder', or heads.mim=None"
            )

    def loss(self, model: nn.Module, step: PretrainStep) -> dict[str, Tensor]:
        """``loss_mim``: patches from the rest and, after fusion, the text."""
        images = step.batch.images
        patch_mask = self.mask_patches(images)
        image = model.backbone.image_tokens(images, patch_mask, self.mask_token)
        patches = image.embeddings
        if self.source == 'fusion':
            patches = model.backbone.fuse(image, step.text.tokens).image_tokens
        return {'loss_mim': self.pixel_loss(patches, images, patch_mask)}

    def pixel_loss(self, patches: Tensor, images: Tensor, patch_mask: Tensor) -> Tensor:
        """ℓ1 between masked pixels and their prediction.

        Args:
            patches: tokens of the masked image, (B, 1 + M, D).
            images: the whole images, normalised, (B, 3, H, W).
            patch_mask: masked patches, (B, M) bool.
        """
        pixels = nn.functional.pixel_unshuffle(images.float(), self.patch_size)
        pixels = pixels.flatten(2).transpose(1, 2)  # as nn.functional.unfold, in one kernel
        predicted = self.decoder(patches[:, 1:]).float()
        error = (predicted - pixels).abs().mean(-1)
        return (error * patch_mask).sum() / patch_mask.sum()
