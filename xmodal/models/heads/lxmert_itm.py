"""Cross-modality matching (LXMERT)."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from xmodal.models.heads.negatives import sample_negatives
from xmodal.models.heads.pretrain_head import PretrainHead
from xmodal.models.heads.shares import require_share
from xmodal.registry import MODELS
from xmodal.structures import LxmertStep, Shown


@MODELS.register_module()
class LxmertITMHead(PretrainHead):
    """Does the image match the text? Two classes from the cross-modality output (Sec. 3.1).

    Half of the texts are replaced by that of another image of the batch, sampled uniformly.

    Args:
        embed_dims: D.
        replace_probability: share of texts replaced.

    Raises:
        ValueError: when it is no share, or all: there is nothing to tell apart.
    """

    order = 6
    min_batch = 2
    reads_image_tokens = False

    def __init__(self, embed_dims: int, replace_probability: float = 0.5) -> None:
        super().__init__()
        require_share('heads.matching.replace_probability', replace_probability, but_all=True)
        self.replace_probability = replace_probability
        self.classifier = nn.Linear(embed_dims, 2)

    def forward(self, pooled: Tensor) -> Tensor:
        """Cross-modality output (B, D) to logits of 'no' and 'yes', (B, 2)."""
        return self.classifier(pooled)

    def replace_texts(self, model: nn.Module, shown: Shown) -> Shown:
        """Replaces texts of the batch by others of it."""
        batch = shown.batch
        rows, matched = self.sample_texts(batch.identities.positives())
        input_ids = batch.input_ids[rows]
        batch = batch._replace(input_ids=input_ids, attention_mask=batch.attention_mask[rows])
        return shown._replace(batch=batch, matched=matched, input_ids=input_ids)

    def sample_texts(self, positives: Tensor) -> tuple[Tensor, Tensor]:
        """Samples the text that each image is shown with.

        Args:
            positives: texts that match an image (rows), never sampled as mismatches, (B, B) bool.

        Returns:
            The rows of the texts (B,) int64, and (B,) bool: True where the text is the image's. An
            image for which the batch has no other text keeps its text.
        """
        other, has_other = sample_negatives(
            torch.zeros(positives.shape, device=positives.device), positives
        )
        rows = torch.arange(len(positives), device=positives.device)
        replaced = has_other & (
            torch.rand(len(positives), device=positives.device) < self.replace_probability
        )
        return torch.where(replaced, other, rows), ~replaced

    def loss(self, model: nn.Module, step: LxmertStep) -> dict[str, Tensor]:
        """``loss_matching``, cross-entropy, and ``matching_accuracy``."""
        logits, labels = self(step.pooled), step.shown.matched.long()
        return {
            'loss_matching': cross_entropy(logits.float(), labels),
            'matching_accuracy': (logits.argmax(1) == labels).float().mean(),
        }
