"""What the models that choose a class share."""

import torch
from torch import Tensor

from xmodal.models.base.predictions import set_classes
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
        """Sets ``probabilities`` (C,) and ``predicted``, the class."""
        return set_classes(samples, self.tensor(batch))
