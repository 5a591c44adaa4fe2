"""The contrastive loss of CLIP, over the batches of all ranks."""

import math

import torch
from mmengine.dist import all_gather, all_reduce, get_rank, is_distributed
from torch import Tensor, nn

from xmodal.models.losses.temperature import exp_within
from xmodal.registry import MODELS


@MODELS.register_module()
class CLIPHead(nn.Module):
    """Cross-entropy of a batch's images over all texts, and of its texts over all images.

    All are those of every rank, and gradients reach the vectors where they came from: the mean over
    ranks is what one process computes with the joint batch. Pairs of the same image or the same
    text share the target's mass: they are no negatives.

    Args:
        temperature: initial value of the learned temperature. What is learned is the logarithm of
            its inverse, held in [0, ln 100] after each step (CLIP, Sec. 2.5).
    """

    def __init__(self, temperature: float = 0.07) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(-math.log(temperature)))

    def loss(self, image: Tensor, text: Tensor, same: Tensor) -> dict[str, Tensor]:
        """The mean of both ways.

        Args:
            image: normalised, (B, d).
            text: normalised, (B, d).
            same: which pairs of all ranks each of this batch's belongs with, (B, ranks · B) bool.

        Returns:
            ``loss`` and ``temperature``.
        """
        with torch.autocast(image.device.type, enabled=False):
            image, text, scale = image.float(), text.float(), exp_within(self.log_scale, 1, 100)
            targets = same / same.sum(1, keepdim=True)
            losses = [
                -(targets * (scale * own @ gather_with_gradient(other).T).log_softmax(1)).sum(1)
                for own, other in ((image, text), (text, image))
            ]
            return {
                'loss': torch.cat(losses).mean(),
                'temperature': 1 / scale.detach(),
            }


class _Gather(torch.autograd.Function):
    """Rows of all ranks; the gradients of all ranks come back to the rank of a row."""

    @staticmethod
    def forward(ctx, own: Tensor) -> Tensor:
        ctx.rows = len(own)
        return torch.cat(all_gather(own.contiguous()))

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        gradient = gradient.contiguous()
        all_reduce(gradient)
        return gradient[get_rank() * ctx.rows :][: ctx.rows]


def gather_with_gradient(own: Tensor) -> Tensor:
    """(B, …) to (ranks · B, …), rank after rank; all ranks have batches of one size."""
    return _Gather.apply(own) if is_distributed() else own
