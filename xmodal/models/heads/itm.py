"""Image-text matching with hard negatives."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from xmodal.models.fusion import FusionRequest
from xmodal.models.heads.match_statistics import by_match
from xmodal.models.heads.negatives import sample_negatives
from xmodal.models.heads.pretrain_head import PretrainHead
from xmodal.registry import MODELS
from xmodal.structures import Fused, PretrainStep


@MODELS.register_module()
class ITMHead(PretrainHead):
    """Does the image match the text? Two classes from the fused [CLS] of the text.

    Args:
        embed_dims: D.
        hardness: how hard negatives are: they are sampled with probability
            softmax(hardness · logits) of the contrastive logits; 1 is ALBEF's, 0 is uniform. A
            fusion encoder that starts from random weights learns from hard negatives alone only
            after a long plateau.
        score: what pairs are ranked by, and Grad-CAM differentiates: 'yes' for the logit of 'yes'
            (as ALBEF does), or 'difference' for the logit of 'yes' minus that of 'no', which ranks
            as the probability of a match does.

    Raises:
        ValueError: for another score.
    """

    order = 2
    min_batch = 2

    def __init__(self, embed_dims: int, hardness: float = 1.0, score: str = 'yes') -> None:
        super().__init__()
        if score not in ('yes', 'difference'):
            raise ValueError(f"heads.itm.score='{score}', expected 'yes' or 'difference'")
        self.hardness, self.score = hardness, score
        self.classifier = nn.Linear(embed_dims, 2)

    def check(self, model: nn.Module) -> None:
        """Raises ValueError where no contrastive head is there to sample negatives by."""
        if model.contrastive_head is None:
            raise ValueError(
                'model.heads has an ITMHead, whose hard negatives are sampled by a contrastive '
                "head: add dict(type='ITCHead') or dict(type='AnchorHead')"
            )

    def words(self, pairs: Tensor) -> Tensor:
        """The words of each pair that the head reads, (P, 1): [CLS]."""
        return pairs.new_zeros(len(pairs), 1)

    def forward(self, text_tokens: Tensor) -> Tensor:
        """Fused words (P, 1 or more, D), [CLS] first, to logits of 'no' and 'yes', (P, 2)."""
        return self.classifier(text_tokens[:, 0])

    def matching_score(self, logits: Tensor) -> Tensor:
        """The logits of pairs, (P, 2), to their matching scores, (P,)."""
        no, yes = logits.unbind(1)
        return yes if self.score == 'yes' else yes - no

    def request_fusion(self, model: nn.Module, step: PretrainStep) -> FusionRequest:
        """Pairs that match and pairs that do not; see :meth:`sample_pairs`."""
        image, text = step.image, step.text
        with torch.no_grad():
            similarity = image.embedding.float() @ step.batch_keys.text_embeddings.float().T
            pairs, labels, weights = self.sample_pairs(
                model.contrastive_head.scale(similarity), step.batch.identities.positives()
            )
        return FusionRequest(image.tokens, text.tokens, pairs, self.words(pairs), (labels, weights))

    def fused_loss(
        self, model: nn.Module, step: PretrainStep, request: FusionRequest, fused: Fused
    ) -> dict[str, Tensor]:
        """``loss_itm``, ``itm_accuracy``, and the position's figures of both kinds of pairs."""
        labels, weights = request.drawn
        values = self.classification_loss(self(fused.text_tokens), labels, weights)
        image, text, pairs = request.image, request.text, request.pairs
        words = text.full_mask()[pairs[:, 1]]
        patches = image.content_mask(model.backbone.image_encoder.has_cls)[pairs[:, 0]]
        figures = model.backbone.position.statistics(fused.relation, words, patches)
        return values | by_match(figures, labels.bool(), weights > 0)

    def sample_pairs(self, logits: Tensor, positives: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The pairs to classify: B that match, B with another image, B with another text.

        Args:
            logits: contrastive logits of the batch's images (rows) and texts, (B, B).
            positives: pairs that share the image or the text, never negatives, (B, B) bool.

        Returns:
            Rows of image and text (3B, 2), labels (3B,) int64, and weights (3B,), 0 for a negative
            that could not be sampled.
        """
        logits = self.hardness * logits
        rows = torch.arange(len(logits), device=logits.device)
        other_text, has_text = sample_negatives(logits, positives)
        other_image, has_image = sample_negatives(logits.T, positives.T)
        pairs = torch.cat(
            [
                torch.stack([rows, rows], 1),
                torch.stack([other_image, rows], 1),
                torch.stack([rows, other_text], 1),
            ]
        )
        labels = (torch.arange(len(pairs), device=rows.device) < len(rows)).long()
        weights = torch.cat([torch.ones_like(has_text), has_image, has_text]).float()
        return pairs, labels, weights

    @staticmethod
    def classification_loss(logits: Tensor, labels: Tensor, weights: Tensor) -> dict[str, Tensor]:
        """Weighted cross-entropy and accuracy over the pairs; logits are (P, 2)."""
        losses = cross_entropy(logits.float(), labels, reduction='none')
        correct = (logits.argmax(1) == labels).float()
        total = weights.sum()
        return {
            'loss_itm': (losses * weights).sum() / total,
            'itm_accuracy': (correct * weights).sum() / total,
        }
