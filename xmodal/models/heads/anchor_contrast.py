"""A contrast of the similarities that anchors are made of; not in the papers."""

from torch import Tensor, nn

from xmodal import functional as F
from xmodal.models.heads.pretrain_head import PretrainHead
from xmodal.models.losses import contrastive_loss
from xmodal.registry import MODELS
from xmodal.structures import PretrainStep


@MODELS.register_module()
class AnchorContrastHead(PretrainHead):
    """Trains words and the patches that show what they mean to agree, without boxes.

    Eq. 3 of ACE-RPE compares the outputs of two encoders, and nothing else in its objective makes
    a word similar to one patch rather than to another. Here an image and a text are compared by
    these very similarities: the mean over the words of that to the nearest patch
    (:func:`xmodal.functional.late_interaction`), in the place of the cosine of ITC. Patches need no
    near word: most show what no caption tells. Negatives are those of the rank's batch. The head
    has no weights.

    Args:
        temperature: of the softmax over the batch.
        groups: G, groups of the similarity; None for those of the position.
    """

    order = 1
    min_batch = 2

    def __init__(self, temperature: float = 0.03, groups: int | None = None) -> None:
        super().__init__()
        self.temperature, self.groups = temperature, groups

    def check(self, model: nn.Module) -> None:
        """Takes the groups of the position, if the head has none of its own.

        Raises:
            ValueError: where neither has groups, or both have and they differ.
        """
        position = model.backbone.position
        of_position = getattr(position, 'groups', None)
        if self.groups is None and of_position is None:
            raise ValueError(
                f'model.heads has {type(self).__name__}, which trains the similarities of, for '
                "example, backbone.position=dict(type='AnchorRelativePosition'), found "
                f"{type(position).__name__}: set the head's groups to train them for no position"
            )
        self.groups = of_position if self.groups is None else self.groups
        F.check_groups(f'{type(self).__name__}.groups', self.groups, position.embed_dims)
        if of_position not in (None, self.groups):
            raise ValueError(
                f'{type(self).__name__}.groups={self.groups}, and position.groups={of_position}: '
                "the head would train other similarities than the position's; leave out its groups"
            )

    def loss(self, model: nn.Module, step: PretrainStep) -> dict[str, Tensor]:
        """``loss_anchors``; ``anchors_accuracy``, how often the nearest text is the image's."""
        patches, patch_mask = step.image.tokens.without_cls(model.backbone.image_encoder.has_cls)
        words, word_mask = step.text.tokens.without_cls()
        similarity = F.late_interaction(patches, words, self.groups, patch_mask, word_mask)
        logits = similarity / self.temperature  # of all images with all texts
        positives = step.batch.identities.positives()
        of_images = contrastive_loss(logits, positives)
        of_texts = contrastive_loss(logits.T, positives.T)
        nearest = logits.argmax(1, keepdim=True)
        return {
            'loss_anchors': (of_images + of_texts).mean() / 2,
            'anchors_accuracy': positives.gather(1, nearest).float().mean(),
        }
