"""Mixed precision on any device, and steps that are skipped."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from mmengine.dist import all_reduce
from mmengine.optim import OptimWrapper
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from xmodal.build_functions import KERNELS
from xmodal.engine.wrappers import whole
from xmodal.errors import ConfigError
from xmodal.registry import OPTIM_WRAPPERS


@OPTIM_WRAPPERS.register_module()
class SafeAmpOptimWrapper(OptimWrapper):
    """MMEngine's OptimWrapper with autocast on CPU and GPU.

    If the loss or a gradient is not finite on any rank, all ranks skip the step and drop its
    gradients, also those that are accumulated before and after.

    Args:
        dtype: 'bfloat16', 'float16' (CUDA only, with a gradient scaler) or None for float32.
        **others: see :class:`mmengine.optim.OptimWrapper`: ``optimizer``, ``accumulative_counts``,
            ``clip_grad``.

    Attributes:
        stepped: whether the last iteration updated the parameters.
        not_finite: whether the last iteration had a loss or gradient that is not finite, without
            gradients of float16 that only overflowed at a scale above 1.
        skipped: number of skipped steps so far.
        skipped_in_a_row: number of consecutive steps up to now with such an iteration, that of the
            last iteration included.

    Raises:
        ConfigError: for another ``dtype``, or float16 without a GPU.
    """

    def __init__(self, dtype: str | None = None, **others) -> None:
        super().__init__(**others)
        if dtype not in (None, 'bfloat16', 'float16'):
            raise ConfigError(
                f"optim_wrapper.dtype='{dtype}', expected 'bfloat16', 'float16' or None (float32)"
            )
        if dtype == 'float16' and not torch.cuda.is_available():
            raise ConfigError(
                "optim_wrapper.dtype='float16' needs a GPU; on a CPU use 'bfloat16' or None"
            )
        self.dtype = getattr(torch, dtype) if dtype else None
        self.scaler = torch.amp.GradScaler('cuda', enabled=dtype == 'float16')
        self.stepped = self.not_finite = self._is_spoilt = False
        self.skipped = self.skipped_in_a_row = 0

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        """Autocasts, and synchronizes no gradients between accumulated steps."""
        device_type = next(model.parameters()).device.type
        with (
            super().optim_context(model),
            torch.autocast(device_type, self.dtype, enabled=self.dtype is not None),
            self._attention_kernel(device_type),
        ):
            yield

    def _attention_kernel(self, device_type: str) -> AbstractContextManager:
        """The kernel of attention, also for activations that the backward pass recomputes.

        PyTorch's CPU kernel is slow in the backward pass of bfloat16: of a step of
        pretrain_shapes.py it took half. Plain products take 1.2 s a step in place of 2.1.
        """
        is_slow = self.dtype is not None and device_type == 'cpu'
        return sdpa_kernel(SDPBackend.MATH) if is_slow else nullcontext()

    def initialize_count_status(self, model: nn.Module, init_counts: int, max_counts: int) -> None:
        """Begins to count the batches of an epoch, at the number of those that were seen.

        MMEngine's runner counts those of the run before, whose number says nothing of gradients
        that are lost: an epoch ends with a step, and the loop counts anew.
        """
        super().initialize_count_status(model, 0, max_counts)  # does not warn of them
        self._inner_count = init_counts

    # MMEngine compiles a whole step. Tracing this took half the time, and it has nothing to fuse.
    @torch.compiler.disable
    def update_params(
        self, loss: Tensor, step_kwargs: dict | None = None, zero_kwargs: dict | None = None
    ) -> None:
        """Runs the backward pass, and steps if a step is due and every rank is finite."""
        finite = torch.isfinite(loss.detach()).float()
        all_reduce(finite, 'min')
        self.backward(self.scale_loss(loss))
        self.stepped = False
        is_due = self.should_update()
        norm = self._gradient_norm() if is_due else None
        self.not_finite = not finite or (norm is not None and not whole(norm).isfinite())
        if self._is_spoilt or self.not_finite:
            self.zero_grad()
        elif is_due:
            before = self.scaler.get_scale()
            self.step(norm, **(step_kwargs or {}))
            self.zero_grad(**(zero_kwargs or {}))
            after = self.scaler.get_scale()
            # Lower where the scaler of float16 has left the step out. It does so until it has found
            # its scale, which is above 1.
            self.stepped = after >= before
            self.not_finite = not self.stepped and after < 1
        self._count(is_due)
        self.message_hub.update_scalar('train/skipped_steps', self.skipped)

    def _count(self, is_due: bool) -> None:
        """Counts a step that is not taken once, however many of its batches are not finite."""
        self.skipped_in_a_row += self.not_finite and not self._is_spoilt
        # Until the step is due: the rest would be a part of its mean.
        self._is_spoilt |= self.not_finite
        if is_due:
            self.skipped += not self.stepped
            if not self._is_spoilt:
                self.skipped_in_a_row = 0
            self._is_spoilt = False

    def _gradient_norm(self) -> Tensor | None:
        """The norm of the gradients, which may be infinite although the loss is finite (√0).

        It is the same on all ranks. None where the scaler checks the gradients, and lowers its
        scale.
        """
        if self.scaler.is_enabled():
            return None
        options = self.clip_grad_kwargs or {}
        gradients = [parameter.grad for parameter in self._parameters()]
        return get_total_norm(gradients, options.get('norm_type', 2.0))

    def _parameters(self) -> list[Tensor]:
        """All parameters that have a gradient."""
        groups = self.optimizer.param_groups
        return [p for group in groups for p in group['params'] if p.grad is not None]

    def backward(self, loss: Tensor, **kwargs) -> None:
        """Runs the backward pass of the scaled loss."""
        with self._attention_kernel(loss.device.type):
            super().backward(self.scaler.scale(loss), **kwargs)

    def step(self, norm: Tensor | None = None, **kwargs) -> None:
        """Clips and steps; ``norm`` is that of the gradients, where it is known already."""
        if self.clip_grad_kwargs:
            self.scaler.unscale_(self.optimizer)
            self._clip_grad(norm)
        self.scaler.step(self.optimizer, **kwargs)
        self.scaler.update()

    def _clip_grad(self, norm: Tensor | None = None) -> None:
        if norm is None or self.grad_name != 'grad_norm':
            super()._clip_grad()
            return
        clip_grads_with_norm_(self._parameters(), self.clip_grad_kwargs['max_norm'], norm)
        self.message_hub.update_scalar('train/grad_norm', float(norm))

    def state_dict(self) -> dict:
        """Returns the state of optimizer and scaler, and the numbers of skipped steps."""
        state = {
            'scaler': self.scaler.state_dict(),
            'skipped': self.skipped,
            'skipped_in_a_row': self.skipped_in_a_row,
        }
        return {**super().state_dict(), 'wrapper': state}

    def load_state_dict(self, state_dict: dict) -> None:
        """Restores what :meth:`state_dict` returned; how a step is computed is this run's."""
        state = state_dict.pop('wrapper', None)
        groups = [
            {**saved, **{key: own[key] for key in KERNELS if key in own}}
            for saved, own in zip(
                state_dict['param_groups'], self.optimizer.param_groups, strict=True
            )
        ]
        super().load_state_dict({**state_dict, 'param_groups': groups})
        if state:
            if state['scaler']:  # empty where the run was not in float16 before
                self.scaler.load_state_dict(state['scaler'])
            self.skipped = state['skipped']
            self.skipped_in_a_row = state.get('skipped_in_a_row', 0)
