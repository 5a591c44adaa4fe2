"""An optimizer wrapper that autocasts on any device and survives a bad batch."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from mmengine.dist import all_reduce, is_distributed
from mmengine.optim import OptimWrapper
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from xmodal.registry import OPTIM_WRAPPERS


@OPTIM_WRAPPERS.register_module()
class SafeAmpOptimWrapper(OptimWrapper):
    """MMEngine's OptimWrapper with autocast on CPU and GPU.

    A loss or a gradient that is not finite, on any rank, skips the step on all of them, and drops
    what was accumulated for it.

    Args:
        dtype: 'bfloat16', 'float16' (CUDA only, with a gradient scaler) or None for float32.
        **others: see :class:`mmengine.optim.OptimWrapper`: ``optimizer``, ``accumulative_counts``,
            ``clip_grad``.

    Attributes:
        stepped: whether the last iteration moved the parameters.
        skipped: steps left out so far because a loss or a gradient was not finite.
        skipped_in_a_row: those of them that were the last ones.
    """

    def __init__(self, dtype: str | None = None, **others) -> None:
        super().__init__(**others)
        if dtype not in (None, 'bfloat16', 'float16'):
            raise ValueError(
                f"optim_wrapper.dtype='{dtype}', expected 'bfloat16', 'float16' or None (float32)"
            )
        if dtype == 'float16' and not torch.cuda.is_available():
            raise ValueError(
                "optim_wrapper.dtype='float16' needs a GPU; on a CPU use 'bfloat16' or None"
            )
        self.dtype = getattr(torch, dtype) if dtype else None
        self.scaler = torch.amp.GradScaler('cuda', enabled=dtype == 'float16')
        self.stepped = False
        self.skipped = self.skipped_in_a_row = 0

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        """Autocast, and no gradient exchange between accumulated steps."""
        device_type = next(model.parameters()).device.type
        enabled = self.dtype is not None
        with super().optim_context(model), torch.autocast(device_type, self.dtype, enabled=enabled):
            yield

    def update_params(
        self, loss: Tensor, step_kwargs: dict | None = None, zero_kwargs: dict | None = None
    ) -> None:
        """Backward, and a step where one is due and all is finite on every rank."""
        finite = torch.isfinite(loss.detach()).float()
        if is_distributed():
            all_reduce(finite, 'min')
        self.backward(self.scale_loss(loss))
        self.stepped = False
        due = self.should_update()
        if not finite or (due and not self._gradients_are_finite()):
            self.skipped += 1
            self.skipped_in_a_row += 1
            self.zero_grad()
        else:
            self.skipped_in_a_row = 0
            if due:
                self.step(**(step_kwargs or {}))
                self.zero_grad(**(zero_kwargs or {}))
                self.stepped = True
        self.message_hub.update_scalar('train/skipped_steps', self.skipped)

    def _gradients_are_finite(self) -> bool:
        """Of a finite loss they need not be: √0 has none. They are the same on all ranks."""
        if self.scaler.is_enabled():
            return True  # it looks itself, and lowers its scale
        groups = self.optimizer.param_groups
        found = [p.grad for group in groups for p in group['params'] if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(found)
        return bool((norm.full_tensor() if isinstance(norm, DTensor) else norm).isfinite())

    def backward(self, loss: Tensor, **kwargs) -> None:
        """Backward of the scaled loss."""
        super().backward(self.scaler.scale(loss), **kwargs)

    def step(self, **kwargs) -> None:
        """Clips and steps."""
        if self.clip_grad_kwargs:
            self.scaler.unscale_(self.optimizer)
            self._clip_grad()
        self.scaler.step(self.optimizer, **kwargs)
        self.scaler.update()

    def state_dict(self) -> dict:
        """The optimizer's state, the scaler's and the count of skipped steps."""
        own = {'scaler': self.scaler.state_dict(), 'skipped': self.skipped}
        return {**super().state_dict(), 'wrapper': own}

    def load_state_dict(self, state_dict: dict) -> None:
        """The inverse of :meth:`state_dict`."""
        own = state_dict.pop('wrapper', None)
        super().load_state_dict(state_dict)
        if own:
            self.scaler.load_state_dict(own['scaler'])
            self.skipped = own['skipped']
