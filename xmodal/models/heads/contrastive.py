"""Contrastive heads over [CLS] vectors: ALBEF's ITC and ACE-RPE's anchor loss."""

import torch
from torch import Tensor, nn

from xmodal import functional as F
from xmodal.models.base.queue import EMPTY, Keys
from xmodal.models.losses.temperature import exp_within
from xmodal.registry import MODELS
from xmodal.structures import Encoded, ImageTextBatch


@MODELS.register_module()
class ITCHead(nn.Module):
    """Image-text contrastive loss against a queue of momentum vectors (ALBEF, Sec. 3.2).

    Keys of the same image or the same text share the target's mass: they are no negatives.

    Args:
        temperature: initial value of the learned temperature, kept in [0.001, 0.5]. Its logarithm
            is what is learned, so that a step of Adam is a share of it and can't cross zero.
    """

    def __init__(self, temperature: float = 0.07) -> None:
        super().__init__()
        self.log_temperature = nn.Parameter(torch.tensor(temperature).log())

    @property
    def temperature(self) -> Tensor:
        """The temperature in use."""
        return exp_within(self.log_temperature, 0.001, 0.5)

    def scale(self, similarity: Tensor) -> Tensor:
        """Similarities as the logits of this loss."""
        return similarity / self.temperature

    def loss(
        self,
        image: Encoded,
        text: Encoded,
        keys: Keys,
        batch: ImageTextBatch,
        own_keys: Keys,
        distillation_weight: float,
    ) -> dict[str, Tensor]:
        """Mean of both directions' cross-entropy.

        Args:
            image: online images of the batch, B rows.
            text: online texts of the batch, B rows.
            keys: K momentum vectors, those of this batch among them.
            batch: for the identities.
            own_keys: the B of them that are this batch's.
            distillation_weight: α; targets are (1 − α) · one-hot + α · the teacher's softmax.

        Returns:
            ``loss_itc`` and ``temperature``.
        """
        with torch.autocast(image.embedding.device.type, enabled=False):
            loss = self._loss(image, text, keys, batch, own_keys, distillation_weight)
        return {'loss_itc': loss, 'temperature': self.temperature.detach()}

    def _loss(
        self,
        image: Encoded,
        text: Encoded,
        keys: Keys,
        batch: ImageTextBatch,
        own_keys: Keys,
        distillation_weight: float,
    ) -> Tensor:
        same = keys.same(batch.image_ids, batch.text_ids)
        empty = keys.image_ids == EMPTY
        losses = []
        for vector, teacher_vector, candidates in (
            (image.embedding, own_keys.image_embeddings, keys.text_embeddings),
            (text.embedding, own_keys.text_embeddings, keys.image_embeddings),
        ):
            candidates = candidates.float()
            logits = self.scale(vector.float() @ candidates.T).masked_fill(empty, -torch.inf)
            targets = same / same.sum(1, keepdim=True)
            if distillation_weight:
                with torch.no_grad():
                    soft = self.scale(teacher_vector.float() @ candidates.T)
                    soft = soft.masked_fill(empty, -torch.inf).softmax(1)
                    targets = torch.lerp(targets, soft, distillation_weight)
            # An empty place has probability 0 in the target; 0 · −inf would be NaN.
            log_probabilities = logits.log_softmax(1).masked_fill(empty, 0)
            losses.append(-(targets * log_probabilities).sum(1).mean())
        return sum(losses) / 2


@MODELS.register_module()
class AnchorHead(nn.Module):
    """The anchor loss L_ace (ACE-RPE, Eqs. 1-2).

    Args:
        scale: λ of Eq. 2, over the negatives of the queue.
        token_scale: λ of the token term of Eq. 1, over patches × words.
        margin: δ of Eq. 2.
    """

    def __init__(self, scale: float = 2.0, token_scale: float = 2.0, margin: float = 0.05) -> None:
        super().__init__()
        self.lambda_, self.token_lambda, self.margin = scale, token_scale, margin

    def scale(self, similarity: Tensor) -> Tensor:
        """Similarities as the logits of this loss."""
        return similarity * self.lambda_

    def loss(
        self,
        image: Encoded,
        text: Encoded,
        keys: Keys,
        batch: ImageTextBatch,
        own_keys: Keys,
        distillation_weight: float,
    ) -> dict[str, Tensor]:
        """Half of H_i2t + H_t2i − the log-sum-exp over patches and words.

        The positive is the teacher's vector of the sample's own partner. A margin has no target
        distribution, so ``distillation_weight`` changes nothing here.

        Returns:
            ``loss_ace``; ``hinge_open``, the share of samples whose hinge has a gradient; and
            ``token_log_sum_exp``.
        """
        with torch.autocast(image.embedding.device.type, enabled=False):
            return self._loss(image, text, keys, batch, own_keys)

    def _loss(
        self, image: Encoded, text: Encoded, keys: Keys, batch: ImageTextBatch, own_keys: Keys
    ) -> dict[str, Tensor]:
        negative = ~keys.same(batch.image_ids, batch.text_ids) & (keys.image_ids != EMPTY)
        hinges = []
        for vector, partner, candidates in (
            (image.embedding, own_keys.text_embeddings, keys.text_embeddings),
            (text.embedding, own_keys.image_embeddings, keys.image_embeddings),
        ):
            vector = vector.float()
            positive = (vector * partner.float()).sum(1)
            negatives = vector @ candidates.float().T
            hinges.append(
                F.margin_contrast(positive, negatives, self.margin, self.lambda_, negative)
            )
        token_term = F.anchor_log_sum_exp(
            image.tokens.embeddings,
            text.tokens.embeddings,
            self.token_lambda,
            text.tokens.attention_mask,
        )
        hinge = hinges[0] + hinges[1]
        return {
            'loss_ace': (hinge - token_term).mean() / 2,
            'hinge_open': torch.stack(hinges).detach().gt(0).float().mean(),
            'token_log_sum_exp': token_term.detach().mean(),
        }
