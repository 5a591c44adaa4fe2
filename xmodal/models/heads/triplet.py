"""Losses over the scores of all images of a batch with all its captions.

Image b and caption b belong together; ``same`` tells which other captions belong to an image too,
and are no negatives of it.
"""

import torch
from torch import Tensor, nn

from xmodal.models.losses.temperature import exp_within
from xmodal.registry import MODELS

NEGATIVES = ('hardest', 'mean', 'sum')


@MODELS.register_module()
class TripletHead(nn.Module):
    """The hinge of each positive over negatives, both ways, summed over the batch (VSE++, SCAN).

    Args:
        margin: α.
        negatives: ``'hardest'`` of the batch, or the ``'mean'`` or ``'sum'`` over all.

    Attributes:
        negatives: a hook may change it as training goes on.

    Raises:
        ValueError: for other ``negatives``.
    """

    takes_logits = False

    def __init__(self, margin: float = 0.2, negatives: str = 'hardest') -> None:
        super().__init__()
        if negatives not in NEGATIVES:
            raise ValueError(f"TripletHead.negatives='{negatives}', expected one of {NEGATIVES}")
        self.margin, self.negatives = margin, negatives

    def plateau(self, batch: int) -> float:
        """The loss where all pairs of a batch score alike: 2 α B, for a sum B − 1 times that."""
        return 2 * self.margin * batch * (batch - 1 if self.negatives == 'sum' else 1)

    def needed(self, scores: Tensor, same: Tensor) -> Tensor | None:
        """The pairs that the loss depends on, (B, B) bool; None for all."""
        if self.negatives != 'hardest':
            return None
        negatives = scores.masked_fill(same, -torch.inf)
        needed = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
        needed.scatter_(1, negatives.argmax(1, keepdim=True), True)
        return needed.scatter_(0, negatives.argmax(0, keepdim=True), True)

    def loss(self, scores: Tensor, same: Tensor) -> dict[str, Tensor]:
        """The loss.

        Args:
            scores: (B, B); −inf for a pair that counts as no negative.
            same: True where a caption belongs to an image, (B, B) bool.

        Returns:
            ``loss_triplet``; and ``hinge_open``, the share of hinges that have a gradient.
        """
        positive = scores.diagonal()
        hinges = []
        for own, other, axis in ((positive[:, None], same, 1), (positive[None], same, 0)):
            hinge = (self.margin + scores - own).clamp(min=0).masked_fill(other, 0)
            if self.negatives == 'hardest':
                hinge = hinge.max(axis).values
            else:
                count = (~same).sum(axis).clamp(min=1) if self.negatives == 'mean' else 1
                hinge = hinge.sum(axis) / count
            hinges.append(hinge)
        hinges = torch.cat(hinges)
        return {
            'loss_triplet': hinges.sum(),
            'hinge_open': hinges.detach().gt(0).float().mean(),
        }


@MODELS.register_module()
class InfoNCEHead(nn.Module):
    """Cross-entropy over the batch, mean of both ways; captions of one image share the target.

    Args:
        temperature: initial value of the learned temperature, kept in [0.001, 0.5].
    """

    takes_logits = True

    def __init__(self, temperature: float = 0.07) -> None:
        super().__init__()
        self.log_temperature = nn.Parameter(torch.tensor(temperature).log())

    def needed(self, scores: Tensor, same: Tensor) -> None:
        """The loss depends on all pairs."""

    def loss(self, logits: Tensor, same: Tensor) -> dict[str, Tensor]:
        """``loss_info_nce`` and ``temperature``; both arguments are (B, B)."""
        temperature = exp_within(self.log_temperature, 0.001, 0.5)
        logits, same = logits.float() / temperature, same.float()
        ways = ((logits, same), (logits.T, same.T))
        losses = [-(own / own.sum(1, keepdim=True) * x.log_softmax(1)).sum(1) for x, own in ways]
        return {
            'loss_info_nce': torch.cat(losses).mean(),
            'temperature': temperature.detach(),
        }
