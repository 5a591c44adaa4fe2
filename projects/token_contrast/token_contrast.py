"""A pre-training objective in one file: images and texts are compared token by token."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from xmodal.models.heads import PretrainHead
from xmodal.models.losses import contrastive_loss
from xmodal.registry import MODELS
from xmodal.structures import PretrainStep


@MODELS.register_module()
class TokenContrastHead(PretrainHead):
    """Late interaction (FILIP, Yao et al., 2022, Eqs. 3-5), in addition to ITC of [CLS].

    The similarity of an image to a text is the mean over its patches of their similarity to the
    most similar word; that of a text to an image is the mean over its words in the same way.
    Negatives are those of the rank's batch.

    Args:
        embed_dims: D.
        dims: d, width in which tokens are compared.
        temperature: of the softmax over the batch.
    """

    min_batch = 2

    def __init__(self, embed_dims: int, dims: int = 64, temperature: float = 0.07) -> None:
        super().__init__()
        self.image_proj = nn.Linear(embed_dims, dims)
        self.text_proj = nn.Linear(embed_dims, dims)
        self.temperature = temperature

    def loss(self, model: nn.Module, step: PretrainStep) -> dict[str, Tensor]:
        """``loss_tokens``, and ``accuracy_tokens``: how often an image's text is ranked first."""
        image, text = step.image.tokens, step.text.tokens
        patches = normalize(self.image_proj(image.embeddings[:, 1:]), dim=-1)
        words = normalize(self.text_proj(text.embeddings[:, 1:]), dim=-1)
        of_images, of_texts = self.similarity(patches, words, text.attention_mask[:, 1:])
        positives = step.batch.texts_of_images
        losses = [
            contrastive_loss(of_images / self.temperature, positives),
            contrastive_loss(of_texts.T / self.temperature, positives.T),
        ]
        correct = positives.gather(1, of_images.argmax(1, keepdim=True))
        return {
            'loss_tokens': torch.cat(losses).mean(),
            'accuracy_tokens': correct.float().mean(),
        }

    @staticmethod
    def similarity(patches: Tensor, words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Every image's to every text, and every text's to every image; both (images, texts).

        Args:
            patches: normalised, (B, M, d).
            words: normalised, (B, N, d).
            mask: True for words, False for padding, (B, N) bool.
        """
        cosine = torch.einsum('imd,tnd->itmn', patches, words).float()
        of_images = cosine.masked_fill(~mask[:, None], -1).amax(3).mean(2)
        of_texts = (cosine.amax(2) * mask).sum(2) / mask.sum(1).clamp(min=1)
        return of_images, of_texts
