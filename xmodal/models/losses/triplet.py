"""Losses over the scores of all images of a batch with all its captions.

Image b and caption b belong together; ``positives`` tells which other captions belong to an image,
too, and are no negatives of it.
"""

import torch
from torch import Tensor, nn

from xmodal.models.losses.contrastive import contrastive_loss
from xmodal.models.losses.temperature import LearnedTemperature
from xmodal.registry import MODELS

NEGATIVES = ('hardest', 'mean', 'sum')


class PairLoss(nn.Module):
    """A loss of the scores of all pairs of a batch.

    A subclass has ``forward(scores, positives)``, both (B, B), which returns losses and figures for
    the log by name.

    Attributes:
        takes_logits: whether the scores are logits, and not the similarity's scores of a test.
        chooses_pairs: whether :meth:`needed_pairs` may leave pairs out, so that the scores of all
            are computed first, without gradients.
    """

    min_batch = 2  # the other captions are the negatives
    takes_logits = False
    chooses_pairs = False

    def needed_pairs(self, scores: Tensor, positives: Tensor) -> Tensor | None:
        """The pairs that the loss depends on, (B, B) bool; None for all.

        The scores have no gradients. ``forward`` may get −inf for other pairs.
        """
        return None


@MODELS.register_module()
class TripletLoss(PairLoss):
    """The hinge of each positive over negatives in both directions, summed (VSE++, SCAN).

    Args:
        margin: α.
        negatives: ``'hardest'`` of the batch, or the ``'mean'`` or ``'sum'`` over all.

    Attributes:
        negatives: a hook may change it during training.

    Raises:
        ValueError: for other ``negatives``.
    """

    def __init__(self, margin: float = 0.2, negatives: str = 'hardest') -> None:
        super().__init__()
        if negatives not in NEGATIVES:
            raise ValueError(f"TripletLoss.negatives='{negatives}', expected one of {NEGATIVES}")
        self.margin, self.negatives = margin, negatives

    @property
    def chooses_pairs(self) -> bool:
        """Whether few pairs count."""
        return self.negatives == 'hardest'

    def plateau(self, batch_size: int) -> float:
        """The loss where all pairs of a batch have equal scores.

        It is 2 α B with the hardest or the mean negative, B − 1 times as much with their sum.
        """
        negatives = batch_size - 1 if self.negatives == 'sum' else 1
        return 2 * self.margin * batch_size * negatives

    def needed_pairs(self, scores: Tensor, positives: Tensor) -> Tensor | None:
        """The positives and the hardest negatives, where those are asked for."""
        if not self.chooses_pairs:
            return None
        negatives = scores.masked_fill(positives, -torch.inf)
        needed = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
        needed.scatter_(1, negatives.argmax(1, keepdim=True), True)
        return needed.scatter_(0, negatives.argmax(0, keepdim=True), True)

    def forward(self, scores: Tensor, positives: Tensor) -> dict[str, Tensor]:
        """The loss.

        Args:
            scores: (B, B); −inf for a pair that does not count as a negative.
            positives: True where a caption belongs to an image, (B, B) bool.

        Returns:
            ``loss_triplet``; and ``hinge_open``, the share of hinges that have a gradient.
        """
        diagonal = scores.diagonal()
        hinges = []
        for positive, axis in ((diagonal[:, None], 1), (diagonal[None], 0)):
            hinge = (self.margin + scores - positive).clamp(min=0).masked_fill(positives, 0)
            if self.negatives == 'hardest':
                hinge = hinge.max(axis).values
            else:
                count = (~positives).sum(axis).clamp(min=1) if self.negatives == 'mean' else 1
                hinge = hinge.sum(axis) / count
            hinges.append(hinge)
        hinges = torch.cat(hinges)
        return {
            'loss_triplet': hinges.sum(),
            'hinge_open': hinges.detach().gt(0).float().mean(),
        }


@MODELS.register_module()
class InfoNCELoss(PairLoss):
    """Contrastive loss over the batch, the mean of both directions.

    Args:
        temperature: initial value of the learned temperature, kept in [0.001, 0.5].
    """

    takes_logits = True

    def __init__(self, temperature: float = 0.07) -> None:
        super().__init__()
        self.temperature = LearnedTemperature(temperature, 0.001, 0.5)

    def forward(self, logits: Tensor, positives: Tensor) -> dict[str, Tensor]:
        """``loss_info_nce`` and ``temperature``; both arguments are (B, B)."""
        logits = self.temperature.scale(logits.float())
        losses = [contrastive_loss(logits, positives), contrastive_loss(logits.T, positives.T)]
        return {
            'loss_info_nce': torch.cat(losses).mean(),
            'temperature': self.temperature().detach(),
        }
