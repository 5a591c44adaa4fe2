"""What an objective of a plug-in may get wrong, named at once instead of hours later."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from xmodal.models.fusion import FusionRequest
from xmodal.models.heads.pretrain_head import PretrainHead


def check_head(name: str, head: nn.Module) -> None:
    """Refuses what was built of ``model.heads.NAME`` if it is no objective.

    Raises:
        ValueError: says what is missing.
    """
    if not isinstance(head, PretrainHead):
        raise ValueError(
            f'model.heads.{name}: {type(head).__name__} is no PretrainHead, whose '
            'loss(model, step) is called in pre-training (docs/plugins.md)'
        )
    if missing := _missing_method(type(head)):
        raise ValueError(
            f'model.heads.{name}: {type(head).__name__} has no method {missing}: a head has '
            'loss(model, step), which returns values by name, or both request_fusion(model, step) '
            'and fused_loss(model, step, request, fused) (docs/plugins.md)'
        )


def check_request(name: str, head: PretrainHead, request: FusionRequest) -> None:
    """Refuses a request for fusion that does not name pairs of tokens.

    Raises:
        ValueError: says what is expected.
    """
    start = f'model.heads.{name}: {type(head).__name__}.request_fusion returned'
    if not isinstance(request, FusionRequest):
        raise ValueError(
            f'{start} {type(request).__name__}, expected FusionRequest(image, text, pairs, words)'
        )
    pairs, words = request.pairs, request.words
    if (
        (pairs.ndim, words.ndim) != (2, 2)
        or pairs.shape[1] != 2
        or len(words) != len(pairs)
        or {pairs.dtype, words.dtype} != {torch.int64}
    ):
        raise ValueError(
            f'{start} pairs {tuple(pairs.shape)} of {pairs.dtype}, words {tuple(words.shape)} of '
            f'{words.dtype}, expected (P, 2), rows of image and text, and (P, W), int64'
        )


def check_values(name: str, head: PretrainHead, values: Mapping[str, Tensor]) -> None:
    """Refuses values of a head that nothing adds up, or that are no tensors.

    Raises:
        ValueError: says what is expected.
    """
    if not isinstance(values, Mapping):
        raise ValueError(
            f'model.heads.{name}: the loss of {type(head).__name__} returned '
            f'{type(values).__name__}, expected values by name, as {{"loss_{name}": …}}'
        )
    for key, value in values.items():
        if not isinstance(value, Tensor | list):  # MMEngine adds up lists of tensors
            raise ValueError(
                f"model.heads.{name}: '{key}' of its loss is {type(value).__name__}, expected a "
                'tensor, without .item()'
            )
        if isinstance(value, Tensor) and not value.is_floating_point():
            raise ValueError(
                f"model.heads.{name}: '{key}' of its loss is of {value.dtype}, expected numbers of "
                'which a mean can be taken: .float()'
            )
    has_gradient = any(isinstance(x, Tensor) and x.requires_grad for x in values.values())
    if has_gradient and not any('loss' in key for key in values):
        raise ValueError(
            f"model.heads.{name} trains nothing: none of its values, {list(values)}, has 'loss' in "
            f"its name, and only those are added up. Call it 'loss_{name}', and detach() a value "
            'that is only logged'
        )


def _missing_method(kind: type[PretrainHead]) -> str | None:
    methods = ('loss', 'request_fusion', 'fused_loss')
    own = {name for name in methods if getattr(kind, name) is not getattr(PretrainHead, name)}
    if 'request_fusion' in own:
        return None if 'fused_loss' in own else 'fused_loss(model, step, request, fused)'
    return None if 'loss' in own else 'loss(model, step)'
