"""Token types: they tell a block that both modalities pass through which modality it gets."""

import torch
from torch import Tensor, nn

from xmodal.registry import MODELS

TYPES = ('text', 'image')


@MODELS.register_module()
class TokenTypeEmbedding(nn.Module):
    """Adds to every token of a modality, [CLS] and padding too, the modality's type vector.

    H' = H + γ ⊙ t (TTE with LayerScale, Eqs. 4-5), computed and returned in float32 also under
    autocast: at γ = 1e-5 the addition is smaller than what bfloat16 tells apart.

    γ is redundant with t, only their product counts: it is a way to begin at almost nothing. Since
    t's gradient carries a factor γ, an optimizer's ``eps`` above that size holds t at its initial
    values until γ has grown.

    Args:
        embed_dims: D.
        position: 'post_encoder': on the encoders' outputs (EMKUM_TTE'); 'pre_encoder': on what
            enters their first blocks, after patches or words, positions and the norm that an
            encoder has there (EMKUM_TTE, Eqs. 1-2, as in VLMo).
        layer_scale: initial value of γ, 1e-5 in the paper; None for no scale, γ = 1.
        shared_scale: one γ for both types, as in the paper, or one each.

    Attributes:
        type_embeddings: t, (2, D): row 0 of texts, row 1 of images.
        gamma: γ, (D,), or (2, D) if not shared; None without a scale.

    Raises:
        ValueError: for another position.
    """

    def __init__(
        self,
        embed_dims: int,
        position: str = 'post_encoder',
        layer_scale: float | None = None,
        shared_scale: bool = True,
    ) -> None:
        super().__init__()
        if position not in ('pre_encoder', 'post_encoder'):
            raise ValueError(
                f"token_type.position='{position}', expected 'pre_encoder' or 'post_encoder'; for "
                'no token types set token_type=None'
            )
        self.position, self.layer_scale = position, layer_scale
        self.type_embeddings = nn.Parameter(torch.empty(len(TYPES), embed_dims))
        nn.init.normal_(self.type_embeddings, std=0.02)
        self.gamma = None
        if layer_scale is not None:
            shape = (embed_dims,) if shared_scale else (len(TYPES), embed_dims)
            self.gamma = nn.Parameter(torch.full(shape, layer_scale))
            self.undecayed = ('gamma',)

    def contribution(self, modality: str) -> Tensor:
        """γ ⊙ t, what is added to every token of 'text' or 'image', (D,)."""
        row = TYPES.index(modality)
        type_embedding = self.type_embeddings[row]
        if self.gamma is None:
            return type_embedding
        return type_embedding * (self.gamma if self.gamma.ndim == 1 else self.gamma[row])

    def forward(self, embeddings: Tensor, modality: str) -> Tensor:
        """Adds the type 'text' or 'image' to tokens (B, L, D)."""
        with torch.autocast(embeddings.device.type, enabled=False):
            return embeddings.float() + self.contribution(modality)
