"""The interface of an encoder of one modality."""

import re
from abc import ABC, abstractmethod

from torch import Tensor, nn

from xmodal.errors import ConfigError
from xmodal.registry import MODELS
from xmodal.structures import Regions, Tokens

_BLOCK = re.compile(r'(?:^|\.)(?:blocks|layers?|h)\.(\d+)\.')  # GPT-2's are called h


def require_image_size(images: Tensor, image_size: int) -> None:
    """Raises ValueError where images (B, 3, H, W) are not squares of ``image_size`` pixels."""
    height, width = images.shape[-2:]
    if (height, width) != (image_size, image_size):
        raise ValueError(
            f'images are {height} x {width} pixels, and image_encoder.image_size={image_size}: '
            f"bring them to it in the pipeline (dict(type='ResizeImage', size={image_size})), or "
            'change the other'
        )


def require_feature_dims(regions: Regions, feature_dims: int) -> None:
    """Raises ValueError where features (B, R, F) have another width than ``feature_dims``."""
    width = regions.features.shape[-1]
    if width != feature_dims:
        raise ValueError(
            f'features of regions are {width} wide, and image_encoder.feature_dims={feature_dims}: '
            f'set it to {width}, or read the features that the model was made for'
        )


class Encoder(nn.Module, ABC):
    """Encodes one modality in two steps, so that a neck may act between them.

    A subclass has ``embed_dims``, the width D of its tokens, and says whether it ``has_cls``: a
    default would be wrong for regions or for pixels, and no error would tell.

    Attributes:
        has_cls: whether its first token is [CLS].
        has_block_inputs: whether :meth:`embed` gives what enters the first block. Without it, token
            types can only act on the outputs.
        max_length: the longest text that an encoder of texts takes, in tokens; None for any, or
            where its ``config`` says it, as one of ``transformers``.
    """

    has_cls: bool
    has_block_inputs = True
    max_length: int | None = None

    def __init_subclass__(cls, **options) -> None:
        """Raises TypeError for a class that does not say whether it ``has_cls``."""
        super().__init_subclass__(**options)
        if not hasattr(cls, 'has_cls'):
            raise TypeError(
                f'{cls.__name__} does not say whether its first token is [CLS]: write '
                'has_cls = True, or False, in the class'
            )

    @abstractmethod
    def embed(self, *inputs) -> Tokens:
        """Inputs to the tokens that enter the first block, (B, L, D)."""

    @abstractmethod
    def encode(self, tokens: Tokens) -> Tokens:
        """The result of :meth:`embed` through all blocks, (B, L, D)."""

    def forward(self, *inputs) -> Tokens:
        """Both steps."""
        return self.encode(self.embed(*inputs))

    def init_weights(self) -> None:
        """Loads pretrained weights where the config names some; called when training starts."""

    def layer_distances(self) -> dict[str, int]:
        """How far below the output the layer of each parameter is, by its name: L + 1 - i.

        i is 0 for the embeddings, 1 to L for the blocks and L + 1 for what follows them, by the
        names of the parameters and their order: blocks are in a list called ``blocks``, ``layers``
        or ``h``. All of an encoder without blocks has distance 0, and so has what an encoder adds
        to another one in it.
        """
        names = [name for name, _ in self.named_parameters()]
        inner = [(name, x) for name, x in self.named_children() if isinstance(x, Encoder)]
        if inner:
            distances = dict.fromkeys(names, 0)
            for child, encoder in inner:
                layers = encoder.layer_distances()
                distances |= {f'{child}.{name}': steps for name, steps in layers.items()}
            return distances
        found = [match and 1 + int(match[1]) for match in map(_BLOCK.search, names)]
        blocks = max(filter(None, found), default=-1)
        is_before, distances = True, {}
        for name, block in zip(names, found, strict=True):
            is_before &= block is None
            layer = block or (0 if is_before else blocks + 1)
            distances[name] = blocks + 1 - layer
        return distances


def build_encoder(config: dict, key: str) -> Encoder:
    """The encoder of a config.

    Args:
        config: of an :class:`Encoder`.
        key: of the config, for errors.

    Raises:
        ConfigError: when the class is no encoder, or does not say how wide its tokens are.
    """
    encoder = MODELS.build(config)
    name = type(encoder).__name__
    if not isinstance(encoder, Encoder):
        raise ConfigError(
            f"{key}.type='{name}' is no Encoder: extend xmodal.models.backbones.Encoder, by "
            'embed() and encode() (docs/plugins.md)'
        )
    width = getattr(encoder, 'embed_dims', None)
    if not isinstance(width, int):
        raise ConfigError(
            f'{key}: {name} has embed_dims={width}, expected a whole number, the width of its '
            'tokens: set self.embed_dims in __init__'
        )
    return encoder
