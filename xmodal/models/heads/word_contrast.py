"""A contrast of the words of a caption by what they see of its image; not in the papers."""

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from xmodal import functional as F
from xmodal.models.heads.anchor_contrast import AnchorContrastHead
from xmodal.registry import MODELS
from xmodal.structures import PretrainStep


@MODELS.register_module()
class WordContrastHead(AnchorContrastHead):
    """Trains the words of one caption to see different patches, without boxes.

    :class:`AnchorContrastHead` compares whole captions, and is content if all words of a caption
    find the patches that the caption is about. Here what a word sees of the image
    (:func:`xmodal.functional.seen_words`) must be nearer to this word than to the others of its
    caption, and the word nearer to it than to what the others see. As in MGCA, a second occurrence
    of a word counts as another word. The head has no weights.

    Args:
        temperature: τ, of the attention and of the contrast.
        groups: G, groups of the similarity; None for those of the position.
        loss_weight: factor of the loss.
    """

    min_batch = 1  # the negatives are words of the same caption

    def __init__(
        self, temperature: float = 0.1, groups: int | None = None, loss_weight: float = 0.5
    ) -> None:
        super().__init__(temperature, groups)
        self.loss_weight = loss_weight

    def loss(self, model: nn.Module, step: PretrainStep) -> dict[str, Tensor]:
        """``loss_words``; ``words_accuracy``, how often what a word sees is nearest to it."""
        patches, patch_mask = step.image.tokens.without_cls(model.backbone.image_encoder.has_cls)
        words, word_mask = step.text.tokens.without_cls()
        if not word_mask.any():  # texts of [CLS] alone, whose logits are −∞
            return {'loss_words': words.sum() * 0}
        logits = F.seen_words(patches, words, self.groups, patch_mask, word_mask, self.temperature)
        own = word_mask.nonzero()[:, 1]
        of_seen, of_words = logits[word_mask], logits.mT[word_mask]
        loss = (cross_entropy(of_seen, own) + cross_entropy(of_words, own)) / 2
        return {
            'loss_words': self.loss_weight * loss,
            'words_accuracy': (of_seen.argmax(1) == own).float().mean(),
        }
