"""Anchors of ACE-RPE: which patches each word is located to, as maps."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from xmodal import functional as F
from xmodal.models.necks import AnchorRelativePosition
from xmodal.structures import Tokens
from xmodal.visualization.patch_maps import mean_over_tokens, patch_maps


class WordAnchors(NamedTuple):
    """A word with the patches that are its anchors.

    Attributes:
        word: the word, or word piece.
        patches: the anchors in each group (Eq. 5), bool (h, w, G).
    """

    word: str
    patches: Tensor

    @property
    def is_anchor(self) -> bool:
        """Whether the word is located to a patch in any group: Fig. 4 has such words in red."""
        return bool(self.patches.any())

    @property
    def share(self) -> np.ndarray:
        """The share of groups in which each patch is an anchor of the word, float32 (h, w)."""
        return self.patches.float().mean(-1).cpu().numpy()


@torch.no_grad()
def word_anchors(
    model: nn.Module, image: Tokens, text: Tokens, words: Sequence[str]
) -> list[WordAnchors]:
    """Returns the anchors of each word of a text, [CLS] included; none for a model without ACE-RPE.

    Args:
        model: in eval mode.
        image: patches (1, 1 + M, D), or regions with boxes (1, R, D); see :func:`patch_maps`.
        text: (1, 1 + N, D).
        words: the 1 + N words, or word pieces.
    """
    position = find_position(model)
    if not isinstance(position, AnchorRelativePosition):
        return []
    similarity = position.relate(image, text).similarity
    if similarity is None:
        return []
    anchors = F.anchor_mask(similarity, position.delta)
    maps = patch_maps(anchors.permute(0, 2, 3, 1), image)[0].movedim(1, -1)  # (1 + N, h, w, G)
    return [WordAnchors(word, of_word) for word, of_word in zip(words, maps, strict=True)]


def similarity_map(model: nn.Module, image: Tokens, text: Tokens) -> Tensor:
    """S_G of Eq. 3, the mean over the groups and over the words of a text, (B, h, w).

    Args:
        model: in eval mode.
        image: patches (B, 1 + M, D), or regions with boxes (B, R, D).
        text: (B, 1 + N, D).

    Raises:
        ValueError: when the model's position has no similarities.
    """
    relation = model.relate(image, text)
    if relation is None or relation.similarity is None:
        raise ValueError(
            'maps of similarity need a position that has some, such as model.backbone.position='
            f"dict(type='AnchorRelativePosition'), found {type(find_position(model)).__name__}"
        )
    return patch_maps(mean_of_words(relation.similarity.mean(-1), text), image)


def mean_of_words(values: Tensor, text: Tokens) -> Tensor:
    """The mean over the words of a text without padding, (B, L, 1 + N, …) to (B, L, …).

    As in ``AnchorContrastHead``, [SEP] counts as a word and [CLS] does not.
    """
    return mean_over_tokens(values.transpose(1, 2), text, first=1)


def find_position(model: nn.Module) -> nn.Module | None:
    """Returns the position of a model; None for a model that has no fusion encoder."""
    return getattr(getattr(model, 'backbone', None), 'position', None)
