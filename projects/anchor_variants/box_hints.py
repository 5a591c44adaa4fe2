"""Boxes as a hint: a few images tell where the objects are that their words name."""

import random

import torch
from torch import Tensor, nn

from xmodal import functional as F
from xmodal.evaluation.location import read_objects, words_on_objects
from xmodal.models.heads import PretrainHead
from xmodal.registry import MODELS
from xmodal.structures import PretrainStep


@MODELS.register_module()
class BoxHintHead(PretrainHead):
    """Trains the similarities of a word to be highest on the object that it names.

    The loss of a word and a group is −log of the share of the patches on the object in the softmax
    of its similarities (Eq. 3) over all patches of the image. Words of images without a hint, and
    those that name nothing, have none.

    Args:
        instances: COCO instances of the training images.
        share: of these images that have a hint.
        temperature: of the softmax over the patches.
    """

    order = 1

    def __init__(self, instances: str, share: float = 0.05, temperature: float = 0.1) -> None:
        super().__init__()
        objects = read_objects(instances)
        hinted = random.Random(0).sample(sorted(objects), round(share * len(objects)))
        self.objects = {image: objects[image] for image in hinted}
        self.temperature = temperature

    def loss(self, model: nn.Module, step: PretrainStep) -> dict[str, Tensor]:
        """``loss_hints``, the mean over hinted words and groups; 0 in a batch without any."""
        image, text = step.image.tokens, step.text.tokens
        groups = model.backbone.position.groups
        similarity = F.multi_group_similarity(image.embeddings, text.embeddings, groups)
        first = int(model.backbone.image_encoder.has_cls)
        logits = similarity[:, first:, 1:] / self.temperature  # (B, M, N, G)
        losses = [
            torch.logsumexp(of_word, 0) - torch.logsumexp(of_word[on_object], 0)
            for row, word, on_object, _ in words_on_objects(model, step.batch, image, self.objects)
            for of_word in [logits[row, : len(on_object), word]]
        ]
        return {'loss_hints': torch.stack(losses).mean() if losses else 0 * logits.sum()}
