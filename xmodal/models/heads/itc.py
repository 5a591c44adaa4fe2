"""Image-text contrast (ITC)."""

import torch
from torch import Tensor, nn

from xmodal.models.heads.pretrain_head import PretrainHead
from xmodal.models.losses import LearnedTemperature, contrastive_loss
from xmodal.registry import MODELS
from xmodal.structures import PretrainStep


class ContrastiveHead(PretrainHead):
    """An objective that trains image and text embeddings.

    Hard negatives are sampled by its similarity, and it ranks candidates in retrieval.
    """

    min_keys = 2

    def scale(self, similarity: Tensor) -> Tensor:
        """Similarities as the logits of this loss."""
        raise NotImplementedError


@MODELS.register_module()
class ITCHead(ContrastiveHead):
    """Image-text contrastive loss against a queue of momentum embeddings (ALBEF, Sec. 3.2).

    Args:
        temperature: initial value of the learned temperature, kept in [0.001, 0.5].
    """

    order = 0
    reads_tokens = False

    def __init__(self, temperature: float = 0.07) -> None:
        super().__init__()
        self.temperature = LearnedTemperature(temperature, 0.001, 0.5)

    def scale(self, similarity: Tensor) -> Tensor:
        """Similarities as the logits of this loss."""
        return self.temperature.scale(similarity)

    def loss(self, model: nn.Module, step: PretrainStep) -> dict[str, Tensor]:
        """``loss_itc``, the mean of both directions, and ``temperature``."""
        positives, keys, teacher = step.positives, step.keys, step.batch_keys
        losses = []
        with torch.autocast(positives.device.type, enabled=False):
            for query, teacher_query, candidates in (
                (step.image.embedding, teacher.image_embeddings, keys.text_embeddings),
                (step.text.embedding, teacher.text_embeddings, keys.image_embeddings),
            ):
                candidates = candidates.float()
                loss = contrastive_loss(
                    self.scale(query.float() @ candidates.T),
                    positives,
                    self.scale(teacher_query.float() @ candidates.T).detach(),
                    step.distillation_weight,
                    keys.is_empty,
                )
                losses.append(loss.mean())
        return {'loss_itc': sum(losses) / 2, 'temperature': self.temperature().detach()}
