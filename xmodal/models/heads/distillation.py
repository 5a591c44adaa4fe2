"""Regression of a teacher's embedding."""

from torch import Tensor, nn
from torch.nn.functional import mse_loss

from xmodal.registry import MODELS


@MODELS.register_module()
class DistillationHead(nn.Module):
    """Norm and linear layer between [CLS] and the teacher's embedding of the image.

    It separates the regression from the contrastive loss on [CLS] ("projections for task
    separation").

    Args:
        embed_dims: D.
        teacher_dims: T.
    """

    def __init__(self, embed_dims: int, teacher_dims: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(embed_dims, eps=1e-6)
        self.projection = nn.Linear(embed_dims, teacher_dims)
        nn.init.normal_(self.projection.weight, std=0.02)
        nn.init.zeros_(self.projection.bias)

    def forward(self, cls_token: Tensor) -> Tensor:
        """(B, D) to (B, T)."""
        return self.projection(self.norm(cls_token))

    def loss(self, image: Tensor, text: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Mean over both modalities of the squared error of [CLS] (B, D) with ``target`` (B, T).

        The error of each modality is logged.
        """
        errors = [mse_loss(self(x).float(), target.float()) for x in (image, text)]
        return {
            'loss_distillation': sum(errors) / 2,
            'image_error': errors[0].detach(),
            'text_error': errors[1].detach(),
        }
