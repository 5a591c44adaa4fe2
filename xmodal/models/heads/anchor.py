"""The anchor loss of ACE-RPE as an objective."""

import torch
from torch import Tensor, nn

from xmodal.models.heads.itc import ContrastiveHead
from xmodal.models.losses import anchor_hinges, anchor_token_term
from xmodal.registry import MODELS
from xmodal.structures import PretrainStep


@MODELS.register_module()
class AnchorHead(ContrastiveHead):
    """The anchor loss L_ace (ACE-RPE, Eqs. 1-2).

    A margin has no target distribution: nothing is distilled here.

    Args:
        scale: λ of Eq. 2, over the negatives of the queue.
        token_scale: λ of the token term of Eq. 1, over patches × words.
        margin: δ of Eq. 2.
    """

    order = 1

    def __init__(self, scale: float = 2.0, token_scale: float = 2.0, margin: float = 0.05) -> None:
        super().__init__()
        self.lambda_, self.token_lambda, self.margin = scale, token_scale, margin

    def scale(self, similarity: Tensor) -> Tensor:
        """Similarities as the logits of this loss."""
        return similarity * self.lambda_

    def loss(self, model: nn.Module, step: PretrainStep) -> dict[str, Tensor]:
        """Half of H_i2t + H_t2i − the log-sum-exp over patches and words.

        Returns:
            ``loss_ace``; ``hinge_open``, the share of hinges that have a gradient; and
            ``token_log_sum_exp``.
        """
        with torch.autocast(step.image.embedding.device.type, enabled=False):
            hinges = anchor_hinges(
                step.image.embedding,
                step.text.embedding,
                step.batch_keys,
                step.keys,
                step.positives,
                self.margin,
                self.lambda_,
            )
            token_term = anchor_token_term(
                step.image.tokens,
                step.text.tokens,
                self.token_lambda,
                model.backbone.image_encoder.has_cls,
            )
        return {
            'loss_ace': (hinges[0] + hinges[1] - token_term).mean() / 2,
            'hinge_open': hinges.detach().gt(0).float().mean(),
            'token_log_sum_exp': token_term.detach().mean(),
        }
