"""The momentum teacher."""

from copy import deepcopy

import torch
from torch import nn


class EMATeacher(nn.Module):
    """An exponential moving average of a module, without gradients and always in eval mode.

    Its methods are called on the copy: ``teacher.module.encode_image(…)``.

    Args:
        module: the online module.
        decay: m; the teacher becomes m · teacher + (1 − m) · online.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self.module = deepcopy(module).requires_grad_(False)
        self.module.eval()

    def train(self, mode: bool = True) -> 'EMATeacher':
        """Stays in eval mode: dropout would make its targets noisy."""
        return super().train(False)

    @torch.no_grad()
    def copy_from(self, module: nn.Module) -> None:
        """Makes the teacher equal to ``module``."""
        self.module.load_state_dict(module.state_dict())

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        """Moves the teacher's parameters towards those of ``module``; copies buffers."""
        online = dict(module.named_parameters())
        averaged = dict(self.module.named_parameters())
        torch._foreach_lerp_(
            list(averaged.values()), [online[name] for name in averaged], 1 - self.decay
        )
        buffers = dict(module.named_buffers())
        for name, buffer in self.module.named_buffers():
            buffer.copy_(buffers[name])
