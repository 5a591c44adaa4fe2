"""The optimizer of BERT's and LXMERT's published recipes."""

import math

import torch
from torch.optim import Optimizer
from torch.optim.adamw import adamw

from xmodal.build_functions import FUSING_DEVICES
from xmodal.registry import OPTIMIZERS


@OPTIMIZERS.register_module()
class BertAdam(Optimizer):
    """AdamW without bias correction.

    m ← β₁ m + (1 − β₁) g, v ← β₂ v + (1 − β₂) g², w ← w − lr (m / (√v + ε) + λ w). Since m and v
    start at zero and are not corrected, the first steps are (1 − β₁) / √(1 − β₂), about three
    times, as large as AdamW's. The warm-up of the recipes compensates for this.

    Args:
        params: parameters or parameter groups.
        lr: learning rate; the warm-up is a scheduler.
        betas: β₁ and β₂.
        eps: ε.
        weight_decay: λ.
    """

    def __init__(
        self,
        params,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None) -> float | None:
        """Updates all parameters that have a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            parameters = [p for p in group['params'] if p.grad is not None]
            if parameters:
                self._step_group(group, parameters)
        return loss

    def _step_group(self, group: dict, parameters: list[torch.Tensor]) -> None:
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter]['mean'] = torch.zeros_like(parameter)
                self.state[parameter]['square'] = torch.zeros_like(parameter)
        (beta1, beta2), state = group['betas'], self.state
        adamw(
            parameters,
            [parameter.grad for parameter in parameters],
            [state[parameter]['mean'] for parameter in parameters],
            [state[parameter]['square'] for parameter in parameters],
            [],
            # After infinitely many steps the bias correction is 1: PyTorch's kernel without it.
            [torch.full((), math.inf, device=parameters[0].device)] * len(parameters),
            fused=all(parameter.device.type in FUSING_DEVICES for parameter in parameters),
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=group['lr'],
            weight_decay=group['weight_decay'],
            eps=group['eps'],
            maximize=False,
        )
