"""Image encoders."""

import re
from functools import partial
from pathlib import Path

import timm
import torch
from timm.layers import resample_abs_pos_embed
from timm.models import VisionTransformer
from torch import Tensor, nn

from xmodal.checkpoint_file import read_checkpoint
from xmodal.models.backbones.encoder import Encoder, require_image_size
from xmodal.models.backbones.timm_weights import read_timm_weights
from xmodal.models.layers import ConvStem, PostNormBlock
from xmodal.registry import MODELS
from xmodal.structures import Tokens
from xmodal.weights import find_weights

_KEY = 'image_encoder.pretrained'
_ADVICE = 'take a TimmImageEncoder for other models of timm'


@MODELS.register_module()
class ViTImageEncoder(Encoder):
    """The first L blocks of a Vision Transformer, from ``timm``.

    Weights made at another resolution load as they are: the position embedding is resampled.

    Args:
        arch: a timm ViT with a class token.
        image_size: height and width of the input, in pixels.
        depth: L, the number of blocks kept; None keeps all.
        pretrained: True for timm's weights, or a file: of timm's weights, or a checkpoint ('….pth')
            of a model of this package with an ``image_encoder``; or a source of a file
            (:mod:`xmodal.weights`). They are read when training starts (``init_weights``), not when
            the model is built.
        conv_stem: patches by :class:`ConvStem` instead of timm's product a patch.
        post_norm: blocks with their norms after the sums (:class:`PostNormBlock`), one norm before
            the first and none after the last, as in data2vec 2.0.
        pos_embed_antialias: whether the resampling is antialiased, as timm's is. ALBEF's is plain
            bicubic (``interpolate_pos_embed`` of its models/vit.py), 2 to 3 % away from it.
        **overrides: passed to timm: ``patch_size``, ``embed_dim``, ``num_heads``, …

    Shape:
        images: (B, 3, H, W); patch_mask: (B, M) bool, True where the mask token replaces a patch.
        Returns tokens of (B, 1 + M, D) with the grid (H / patch, W / patch).
    """

    has_cls = True

    def __init__(
        self,
        arch: str = 'vit_base_patch16_224',
        image_size: int = 256,
        depth: int | None = None,
        pretrained: bool | str = False,
        conv_stem: bool = False,
        post_norm: bool = False,
        pos_embed_antialias: bool = True,
        **overrides,
    ) -> None:
        super().__init__()
        if depth is not None:
            overrides['depth'] = depth
        if post_norm:
            overrides |= dict(block_fn=PostNormBlock, pre_norm=True, final_norm=False)
        self.arch, self.pretrained, self.image_size = arch, pretrained, image_size
        self.options = dict(num_classes=0, global_pool='', **overrides)
        try:
            self.vit = timm.create_model(arch, img_size=image_size, **self.options)
        except TypeError as error:
            if "'img_size'" not in str(error):
                raise
            raise ValueError(  # a CNN
                f"image_encoder.arch='{arch}' takes no img_size, expected a VisionTransformer: "
                f'{_ADVICE}'
            ) from error
        if not isinstance(self.vit, VisionTransformer):  # BEiT's parts have other names
            raise ValueError(
                f"image_encoder.arch='{arch}' is a {type(self.vit).__name__}, expected a "
                f'VisionTransformer: {_ADVICE}'
            )
        if self.vit.num_prefix_tokens != 1:
            raise ValueError(
                f"image_encoder.arch='{arch}' has {self.vit.num_prefix_tokens} tokens before the "
                f'patches, expected [CLS] alone: {_ADVICE}'
            )
        if overrides.get('patch_drop_rate'):
            raise ValueError(
                f'image_encoder.patch_drop_rate={overrides["patch_drop_rate"]}: a patch that is '
                'left out has no place in the grid, so that positions and masks would be of others'
            )
        if conv_stem:
            self.vit.patch_embed = ConvStem(self.patch_size, self.embed_dims, image_size)
        self.vit.register_load_state_dict_pre_hook(
            partial(_resample_position, antialias=pos_embed_antialias)
        )

    @property
    def embed_dims(self) -> int:
        """D, the width of the tokens."""
        return self.vit.embed_dim

    @property
    def patch_size(self) -> int:
        """Side of a patch, in pixels."""
        return self.vit.patch_embed.patch_size[0]

    def init_weights(self) -> None:
        """Loads the pretrained weights, if any are asked for; blocks past L are left out.

        Raises:
            FileNotFoundError: when the weights can be neither read nor downloaded.
            ValueError: when they are of another encoder.
        """
        if not self.pretrained:
            return
        known = self.state_dict()
        weights = self._read_weights()
        if missing := sorted(known.keys() - weights.keys()):
            raise ValueError(
                f'{_KEY}={self.pretrained!r} lacks {len(missing)} of the {len(known)} weights of '
                f"the encoder ({missing[0]}, …): it is of another encoder than '{self.arch}' with "
                'these options'
            )
        self.load_state_dict({name: weights[name] for name in known})

    def _read_weights(self) -> dict[str, Tensor]:
        """The pretrained weights by their names here, those of blocks past L among them."""
        options = self.options
        if isinstance(self.pretrained, str):
            if weights := _read_checkpoint(find_weights(self.pretrained, _KEY)):
                return weights
        else:  # timm leaves at random what its own weights lack for other options
            options = {'num_classes': 0}
        weights = read_timm_weights(self.arch, self.pretrained, _KEY, **options)
        return {f'vit.{name}': x for name, x in weights.items()}

    def embed(
        self,
        images: Tensor,
        patch_mask: Tensor | None = None,
        mask_token: Tensor | None = None,
    ) -> Tokens:
        """Pixels to patch embeddings with positions; a mask token (D,) replaces masked patches.

        Raises:
            ValueError: when the images are of another size.
        """
        require_image_size(images, self.image_size)
        has_conv_stem = isinstance(self.vit.patch_embed, ConvStem)
        if patch_mask is not None and has_conv_stem:
            images = self._hide(images, patch_mask)
        patches = self.vit.patch_embed(images)
        if patch_mask is not None:
            hidden = patch_mask.view(*patches.shape[:-1], 1)  # in a grid with dynamic_img_size
            patches = torch.where(hidden, mask_token.to(patches.dtype), patches)
        embeddings = self.vit.norm_pre(self.vit._pos_embed(patches))
        return Tokens(
            embeddings,
            grid_size=self.vit.patch_embed.grid_size,
            at_corners=has_conv_stem,
        )

    def _hide(self, images: Tensor, patch_mask: Tensor) -> Tensor:
        """The images without the pixels of masked patches, (B, 3, H, W).

        The mask token takes the place of a patch, but a convolutional stem shows its pixels to the
        patches beside it.
        """
        hidden = patch_mask.unflatten(1, self.vit.patch_embed.grid_size)[:, None]
        for axis in (2, 3):
            hidden = hidden.repeat_interleave(self.patch_size, axis)
        return images.masked_fill(hidden, 0)

    def encode(self, tokens: Tokens) -> Tokens:
        """The L blocks and the last norm."""
        return tokens.with_embeddings(self.vit.norm(self.vit.blocks(tokens.embeddings)))


def _read_checkpoint(file: str) -> dict[str, Tensor]:
    """The ``image_encoder`` of a checkpoint of this package; nothing if it is another file."""
    if not Path(file).is_file() or Path(file).suffix != '.pth':
        return {}
    state_dict = read_checkpoint(file).get('state_dict', {})
    pattern = re.compile(r'(?:backbone\.)?image_encoder\.(.+)')
    matches = ((pattern.fullmatch(name), x) for name, x in state_dict.items())
    return {match[1]: x for match, x in matches if match}


def resample_position(loaded: Tensor, vit: nn.Module, antialias: bool = True) -> Tensor:
    """A position embedding of another grid, at the size of that of a timm ViT."""
    rows, columns = vit.patch_embed.grid_size
    first = vit.pos_embed.shape[1] - rows * columns  # of [CLS], none where it has no position
    return resample_abs_pos_embed(loaded, [rows, columns], None, first, antialias=antialias)


def _resample_position(vit: nn.Module, state_dict: dict, prefix: str, *_, antialias: bool) -> None:
    """Fits a loaded position embedding (1, 1 + M, D) to the grid of ``vit``."""
    key = prefix + 'pos_embed'
    loaded = state_dict.get(key)
    if loaded is not None and loaded.shape[1] != vit.pos_embed.shape[1]:
        state_dict[key] = resample_position(loaded, vit, antialias)
