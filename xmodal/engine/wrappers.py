"""Models inside of what MMEngine wraps around them, and what wrappers leave to each rank."""

from collections.abc import Iterator

from mmengine.dist import broadcast
from mmengine.model import is_model_wrapper
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


def unwrap(model: nn.Module) -> nn.Module:
    """The model itself, without the wrapper that it has in a run of several processes."""
    return model.module if is_model_wrapper(model) else model


def batch_norm_statistics(model: nn.Module) -> Iterator[Tensor]:
    """The running statistics of all batch norms."""
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            yield from module.buffers(recurse=False)


def share_statistics(model: nn.Module) -> None:
    """Gives all ranks the first one's running statistics, the ones that a checkpoint holds.

    In training each rank's batch norms see their own share of the batch.
    """
    for value in batch_norm_statistics(model):
        broadcast(value)
