"""A convolutional stem for Vision Transformers."""

from math import log2

from torch import Tensor, channels_last, nn


class ConvStem(nn.Sequential):
    """Patches from 3 × 3 convolutions of stride 2 instead of one product a patch.

    "Early Convolutions Help Transformers See Better" (Xiao et al., 2021), without batch norm: the
    channels double from one to the next, up to the width of the tokens. Small transformers see
    shapes with it that they hardly learn without.

    Args:
        patch_size: side of a patch in pixels, a power of two.
        embed_dims: D.
        image_size: height and width of the input, in pixels.

    Shape:
        images (B, 3, H, W) to patches (B, M, D), row by row.

    Raises:
        ValueError: when the side of a patch is no power of two, or patches do not fill the image.
    """

    def __init__(self, patch_size: int, embed_dims: int, image_size: int) -> None:
        steps = int(log2(patch_size))
        if 2**steps != patch_size:
            raise ValueError(f'conv_stem needs a patch_size that is a power of 2, got {patch_size}')
        if image_size % patch_size:
            raise ValueError(
                f'conv_stem needs an image_size that is a multiple of patch_size={patch_size}, '
                f'got {image_size}'
            )
        channels = [3] + [embed_dims >> step for step in reversed(range(steps))]
        layers = []
        for inputs, outputs in zip(channels, channels[1:], strict=False):
            layers += [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.ReLU()]
        super().__init__(*layers[:-1])
        self.patch_size = (patch_size, patch_size)
        self.grid_size = (image_size // patch_size, image_size // patch_size)

    def forward(self, images: Tensor) -> Tensor:
        """Patches of pixels."""
        images = images.contiguous(memory_format=channels_last)  # as convolutions compute
        return super().forward(images).flatten(2).transpose(1, 2)
