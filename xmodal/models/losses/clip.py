"""The contrastive loss of CLIP, over the batches of all ranks."""

import torch
from mmengine.dist import all_gather, all_reduce, get_rank, is_distributed
from torch import Tensor, nn

from xmodal.models.losses.contrastive import contrastive_loss
from xmodal.models.losses.temperature import LearnedTemperature


class CLIPLoss(nn.Module):
    """Contrastive loss of a batch's images over all texts, and of its texts over all images.

    The candidates are those of every rank, and gradients reach the rank that an embedding comes
    from: the mean over ranks is what one process computes with the joint batch.

    Args:
        temperature: initial value of the learned temperature, kept in [0.01, 1]. The learned
            parameter is the logarithm of its inverse (CLIP, Sec. 2.5).
    """

    min_keys = 2

    def __init__(self, temperature: float = 0.07) -> None:
        super().__init__()
        self.temperature = LearnedTemperature(temperature, 0.01, 1.0, inverse=True)

    def forward(self, image: Tensor, text: Tensor, positives: Tensor) -> Tensor:
        """The mean of both directions.

        Args:
            image: normalised, (B, d).
            text: normalised, (B, d).
            positives: pairs of all ranks that match each pair of this batch, (B, ranks · B) bool.
        """
        with torch.autocast(image.device.type, enabled=False):
            image, text = image.float(), text.float()
            losses = [
                contrastive_loss(self._logits(queries, candidates), positives)
                for queries, candidates in ((image, text), (text, image))
            ]
            return torch.cat(losses).mean()

    def _logits(self, queries: Tensor, candidates: Tensor) -> Tensor:
        return self.temperature.scale(queries) @ gather_with_gradient(candidates).T


class _Gather(torch.autograd.Function):
    """Rows of all ranks; the gradients of all ranks come back to the rank of a row."""

    @staticmethod
    def forward(ctx, local: Tensor) -> Tensor:
        ctx.rows = len(local)
        return torch.cat(all_gather(local.contiguous()))

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        gradient = gradient.contiguous()
        all_reduce(gradient)
        return gradient[get_rank() * ctx.rows :][: ctx.rows]


def gather_with_gradient(local: Tensor) -> Tensor:
    """(B, …) to (ranks · B, …), rank after rank; all ranks have batches of one size."""
    return _Gather.apply(local) if is_distributed() else local
