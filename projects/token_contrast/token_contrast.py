"""A head of your own, in one file: images and texts are compared token by token."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from xmodal.models.albef.pretrainer import AlbefPretrainer
from xmodal.registry import MODELS
from xmodal.structures import DataSample, Encoded, ImageTextBatch


@MODELS.register_module()
class TokenContrastHead(nn.Module):
    """Late interaction (FILIP, Yao et al., 2022, Eqs. 3-5), beside the contrast of [CLS] vectors.

    An image is as similar to a text as its patches are, on average, to the words that each
    resembles most; a text to an image likewise. Negatives are those of the rank's own batch.

    Args:
        embed_dims: D.
        dims: d, width in which tokens are compared.
        temperature: of the softmax over the batch.
    """

    def __init__(self, embed_dims: int, dims: int = 64, temperature: float = 0.07) -> None:
        super().__init__()
        self.image_proj = nn.Linear(embed_dims, dims)
        self.text_proj = nn.Linear(embed_dims, dims)
        self.temperature = temperature

    def step_loss(
        self,
        model: AlbefPretrainer,
        image: Encoded,
        text: Encoded,
        batch: ImageTextBatch,
        samples: list[DataSample],
    ) -> dict[str, Tensor]:
        """``loss``, and ``accuracy``: how often an image's own text is the most similar one."""
        patches = normalize(self.image_proj(image.tokens.embeddings[:, 1:]), dim=-1)
        words = normalize(self.text_proj(text.tokens.embeddings[:, 1:]), dim=-1)
        of_images, of_texts = self.similarity(patches, words, text.tokens.attention_mask[:, 1:])
        same = batch.image_ids[:, None] == batch.image_ids
        targets = same / same.sum(1, keepdim=True)
        loss = sum(cross_entropy(x / self.temperature, targets) for x in (of_images, of_texts.T))
        correct = same.gather(1, of_images.argmax(1, keepdim=True))
        return {'loss': loss / 2, 'accuracy': correct.float().mean()}

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
