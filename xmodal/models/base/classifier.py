"""What the models that choose a class share."""

import torch
from torch import Tensor

from xmodal.structures import DataSample, ImageTextBatch


class ClassifierMixin:
    """``loss`` and ``predict`` by ``tensor``, the logits (B, C) of ``heads['classification']``."""

    def loss(self, batch: ImageTextBatch, samples: list[DataSample]) -> dict[str, Tensor]:
        """``loss_classification`` and the accuracy on the batch; samples have a ``label``."""
        logits = self.tensor(batch)
        labels = torch.tensor([sample.label for sample in samples], device=logits.device)
        return self.heads['classification'].loss(logits, labels, *self.soft_targets(batch))

    def soft_targets(self, batch: ImageTextBatch) -> tuple[Tensor, float] | tuple[()]:
        """A teacher's logits (B, C) and their weight; nothing without a teacher."""
        return ()

    def predict(self, batch: ImageTextBatch, samples: list[DataSample]) -> list[DataSample]:
        """Sets ``probabilities`` (C,) and ``predicted``, the class.

        Raises:
            ValueError: when a logit is not finite, of which any class could come out.
        """
        logits = self.tensor(batch)
        if not logits.isfinite().all():
            raise ValueError('logits are not finite: the weights of the model hold NaN or inf')
        for sample, probabilities in zip(samples, logits.float().cpu().softmax(1), strict=True):
            sample.probabilities = probabilities
            sample.predicted = int(probabilities.argmax())
        return samples
