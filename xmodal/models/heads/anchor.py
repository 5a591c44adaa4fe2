"""The anchor loss of ACE-RPE as an objective."""

import torch
from torch import Tensor, nn

from xmodal import functional as F
from xmodal.models.heads.itc import ContrastiveHead
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
        image, text, teacher, keys = step.image, step.text, step.batch_keys, step.keys
        negatives = ~step.positives & ~keys.is_empty
        hinges = []
        with torch.autocast(image.embedding.device.type, enabled=False):
            for query, partner, candidates in (
                (image.embedding, teacher.text_embeddings, keys.text_embeddings),
                (text.embedding, teacher.image_embeddings, keys.image_embeddings),
            ):
                query = query.float()
                positive = (query * partner.float()).sum(1)
                similarity = query @ candidates.float().T
                hinges.append(
                    F.margin_contrast(positive, similarity, self.margin, self.lambda_, negatives)
                )
            patches, patch_mask = image.tokens.without_cls(model.backbone.image_encoder.has_cls)
            words, word_mask = text.tokens.without_cls()
            token_term = F.anchor_log_sum_exp(
                patches, words, self.token_lambda, patch_mask, word_mask
            )
        hinges = torch.stack(hinges)
        return {
            'loss_ace': (hinges[0] + hinges[1] - token_term).mean() / 2,
            'hinge_open': hinges.detach().gt(0).float().mean(),
            'token_log_sum_exp': token_term.detach().mean(),
        }
