"""Cross-modality matching (LXMERT)."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from xmodal.models.heads.itm import sample_negatives
from xmodal.registry import MODELS


@MODELS.register_module()
class LxmertITMHead(nn.Module):
    """Is this the image's text? Two classes from the cross-modality output (Sec. 3.1).

    Half of the texts are replaced by that of another image of the batch, any with the same
    probability.

    Args:
        embed_dims: D.
        replace_probability: share of texts replaced.
    """

    def __init__(self, embed_dims: int, replace_probability: float = 0.5) -> None:
        super().__init__()
        self.replace_probability = replace_probability
        self.classifier = nn.Linear(embed_dims, 2)

    def draw(self, same: Tensor) -> tuple[Tensor, Tensor]:
        """Draws the text that each image is shown with.

        Args:
            same: (B, B) bool, images (rows) that a text is of; never drawn as another's.

        Returns:
            The rows of the texts (B,) int64, and (B,) bool: True where it is the image's own. An
            image for which the batch has no other text keeps its own.
        """
        other, possible = sample_negatives(torch.zeros(same.shape, device=same.device), same)
        own = torch.arange(len(same), device=same.device)
        replaced = possible & (torch.rand(len(same), device=same.device) < self.replace_probability)
        return torch.where(replaced, other, own), ~replaced

    def forward(self, pooled: Tensor) -> Tensor:
        """Cross-modality output (B, D) to logits of 'no' and 'yes', (B, 2)."""
        return self.classifier(pooled)

    def loss(self, logits: Tensor, matched: Tensor) -> dict[str, Tensor]:
        """Cross-entropy with (B,) bool ``matched``, and the share judged rightly."""
        labels = matched.long()
        accuracy = (logits.argmax(1) == labels).float().mean()
        return {
            'loss_matching': cross_entropy(logits.float(), labels),
            'matching_accuracy': accuracy,
        }
