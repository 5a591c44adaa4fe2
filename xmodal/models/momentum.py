"""The momentum teacher."""

from copy import deepcopy

import torch
from torch import nn


class MomentumTwin(nn.Module):
    """An exponential moving average of a module, without gradients and always in eval mode.

    Called as the module itself: ``twin.module.encode_image(…)``.

    Args:
        module: the online module.
        decay: m; the twin becomes m · twin + (1 − m) · online.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self.module = deepcopy(module).requires_grad_(False)
        self.module.eval()

    def train(self, mode: bool = True) -> 'MomentumTwin':
        """Stays in eval mode: a teacher with dropout would teach noise."""
        return super().train(False)

    @torch.no_grad()
    def copy_from(self, module: nn.Module) -> None:
        """Makes the twin equal to ``module``."""
        self.module.load_state_dict(module.state_dict())

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        """Moves the twin's parameters towards those of ``module``; buffers are copied."""
        online = dict(module.named_parameters())
        twins = dict(self.module.named_parameters())
        torch._foreach_lerp_(list(twins.values()), [online[name] for name in twins], 1 - self.decay)
        buffers = dict(module.named_buffers())
        for name, buffer in self.module.named_buffers():
            buffer.copy_(buffers[name])
