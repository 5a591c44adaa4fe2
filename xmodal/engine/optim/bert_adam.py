"""The optimizer of BERT's and LXMERT's published recipes."""

import torch
from torch.optim import Optimizer

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
        gradients = [parameter.grad for parameter in parameters]
        means, squares = (
            [self.state[parameter][name] for parameter in parameters] for name in ('mean', 'square')
        )
        (beta1, beta2), lr = group['betas'], group['lr']
        # One call for all tensors of a group saves hundreds of small kernels on a GPU.
        torch._foreach_lerp_(means, gradients, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - beta2)
        scales = torch._foreach_sqrt(squares)
        torch._foreach_add_(scales, group['eps'])
        torch._foreach_mul_(parameters, 1 - lr * group['weight_decay'])
        torch._foreach_addcdiv_(parameters, means, scales, -lr)
