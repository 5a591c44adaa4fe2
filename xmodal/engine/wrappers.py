"""Models without their wrappers, tensors of all shards, and statistics that ranks share."""

from collections.abc import Iterator

from mmengine.dist import broadcast
from mmengine.model import is_model_wrapper
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn.modules.batchnorm import _BatchNorm


def unwrap(model: nn.Module) -> nn.Module:
    """Returns the model without the wrapper that it has in a run of several processes."""
    return model.module if is_model_wrapper(model) else model


def whole(tensor: Tensor) -> Tensor:
    """Returns the whole of a tensor that FSDP may have sharded."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def batch_norm_statistics(model: nn.Module) -> Iterator[Tensor]:
    """Yields the running statistics of all batch norms."""
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            yield from module.buffers(recurse=False)


def share_statistics(model: nn.Module) -> None:
    """Copies the running statistics of the first rank, which a checkpoint holds, to all ranks.

    In training, the batch norms of each rank see a different part of the batch.
    """
    for value in batch_norm_statistics(model):
        broadcast(value)


def share_moving_statistics(model: nn.Module) -> None:
    """The same of the batch norms that training moves, without those of frozen parts."""
    for module in model.modules():
        if isinstance(module, _BatchNorm) and module.training:
            share_statistics(module)
