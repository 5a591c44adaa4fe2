"""Token sets: what an encoder gets of an image, and what it hands on.

Letters used throughout: B batch, M image patches, R regions, N words, D width, G groups. In the
fusion models index 0 of every token axis is [CLS], so that an image has 1 + M tokens. In the
matching models a token set is regions, or words with <start> and <end>: it has no [CLS].
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad


class ObjectLabels(NamedTuple):
    """The detector's classes of regions, with its confidences.

    Attributes:
        objects: class ids, (B, R) int64.
        object_confidences: in 0…1, (B, R) float32; 0 for padding.
        attributes: attribute ids, (B, R) int64.
        attribute_confidences: in 0…1, (B, R) float32; 0 for padding.
    """

    objects: Tensor
    object_confidences: Tensor
    attributes: Tensor
    attribute_confidences: Tensor


class Regions(NamedTuple):
    """The regions that a detector found in B images.

    Attributes:
        features: float32, (B, R, F).
        attention_mask: True for regions, False for padding, (B, R) bool.
        boxes: normalised x1, y1, x2, y2, (B, R, 4); None when unknown.
        labels: classes of the regions; None when unknown.
    """

    features: Tensor
    attention_mask: Tensor
    boxes: Tensor | None = None
    labels: ObjectLabels | None = None

    def hidden(self) -> 'Regions':
        """One region in the place of all: not even their number and places are told.

        Also of one image, without the dimension B.
        """
        features = torch.zeros_like(self.features[..., :1, :])
        boxes, labels = self.boxes, self.labels
        if boxes is not None:
            boxes = features.new_tensor([0.0, 0.0, 1.0, 1.0]).expand(*features.shape[:-1], 4)
        if labels is not None:
            labels = ObjectLabels(*(torch.zeros_like(values[..., :1]) for values in labels))
        return Regions(features, torch.ones_like(self.attention_mask[..., :1]), boxes, labels)


def select_rows(x: Tensor, rows: Tensor) -> Tensor:
    """Rows (K,) int64 of x (B, …); a single row is repeated without a copy."""
    return x.expand(len(rows), *x.shape[1:]) if len(x) == 1 else x[rows]


def select_tokens(x: Tensor, tokens: Tensor) -> Tensor:
    """Tokens (B, W) int64 of each row of x (B, L, …)."""
    index = tokens.reshape(*tokens.shape, *[1] * (x.ndim - 2))
    return x.gather(1, index.expand(*tokens.shape, *x.shape[2:]))


class Tokens(NamedTuple):
    """The token set of one modality.

    Attributes:
        embeddings: (B, L, D).
        attention_mask: True for real tokens, (B, L) bool; None when all are.
        grid_size: rows and columns of the patch grid of an image, else None.
        boxes: normalised x1, y1, x2, y2 of tokens that are regions, (B, R, 4), else None.
        at_corners: whether patches see what is around the upper left corners of the cells of the
            grid, as those of :class:`xmodal.models.layers.ConvStem`, and not around their middles.
    """

    embeddings: Tensor
    attention_mask: Tensor | None = None
    grid_size: tuple[int, int] | None = None
    boxes: Tensor | None = None
    at_corners: bool = False

    def select(self, rows: Tensor) -> 'Tokens':
        """Selects batch rows, (K,) int64, of every tensor."""
        return self._changed(lambda x: select_rows(x, rows))

    def to(self, device: torch.device | str) -> 'Tokens':
        """The same tokens on a device."""
        return self._changed(lambda x: x.to(device))

    def _changed(self, change: Callable[[Tensor], Tensor]) -> 'Tokens':
        fields = (self.embeddings, self.attention_mask, self.boxes)
        embeddings, mask, boxes = (None if x is None else change(x) for x in fields)
        return Tokens(embeddings, mask, self.grid_size, boxes, self.at_corners)

    def with_embeddings(self, embeddings: Tensor) -> 'Tokens':
        """The same tokens with other embeddings, (B, L, D)."""
        # Not by _replace: torch.compile of PyTorch 2.11 cannot return what that makes.
        return Tokens(embeddings, self.attention_mask, self.grid_size, self.boxes, self.at_corners)

    @classmethod
    def join(cls, parts: list['Tokens']) -> 'Tokens':
        """The token sets of several batches as one batch, padded to the longest."""
        longest = max(part.embeddings.shape[1] for part in parts)
        missing = [longest - part.embeddings.shape[1] for part in parts]
        padded = [  # without a copy where nothing is missing
            pad(p.embeddings, (0, 0, 0, n)) if n else p.embeddings
            for p, n in zip(parts, missing, strict=True)
        ]
        masks = None
        if any(missing) or any(part.attention_mask is not None for part in parts):
            masks = [pad(p.full_mask(), (0, n)) for p, n in zip(parts, missing, strict=True)]
        boxes = None
        if all(part.boxes is not None for part in parts):
            boxes = [pad(p.boxes, (0, 0, 0, n)) for p, n in zip(parts, missing, strict=True)]
        joined = [None if x is None else torch.cat(x) for x in (padded, masks, boxes)]
        return cls(joined[0], joined[1], parts[0].grid_size, joined[2], parts[0].at_corners)

    def full_mask(self) -> Tensor:
        """The attention mask, all True where there is none, (B, L) bool."""
        if self.attention_mask is not None:
            return self.attention_mask
        return self.embeddings.new_ones(self.embeddings.shape[:2], dtype=torch.bool)

    def pairs_with(self, others: 'Tokens') -> Tensor:
        """Pairs of these tokens and others, row by row, without padding, (B, L, L') bool."""
        return self.full_mask()[:, :, None] & others.full_mask()[:, None]

    def without_cls(self, has_cls: bool = True) -> tuple[Tensor, Tensor]:
        """Embeddings and full mask of all tokens but [CLS], which regions do not have."""
        first = int(has_cls)
        return self.embeddings[:, first:], self.full_mask()[:, first:]

    def content_mask(self, has_cls: bool = True) -> Tensor:
        """Tokens that are neither padding nor [CLS], which regions do not have, (B, L) bool."""
        mask = self.full_mask().clone()
        mask[:, : int(has_cls)] = False
        return mask

    def require_places(self) -> None:
        """Refuses the tokens of an image that are nowhere.

        Raises:
            ValueError: for regions without boxes.
        """
        if self.boxes is None and self.grid_size is None:
            raise ValueError(
                'found regions without boxes, which are nowhere: fusion.coordinates=True and every '
                "position but 'none' and 'uniform' need a grid of patches, or regions with boxes "
                '(docs/regions.md)'
            )

    def places(self) -> Tensor:
        """The centres (y, x) of cells after [CLS] (B, 1 + M, 2), or of regions (B, R, 2).

        They go from −1 to 1 between the edges of the image; [CLS], which is nowhere, is at 0.

        Raises:
            ValueError: for regions without boxes, which are nowhere.
        """
        self.require_places()
        if self.boxes is not None:
            return (self.boxes[..., :2] + self.boxes[..., 2:]).flip(-1) - 1
        device = self.embeddings.device
        axes = [(2 * torch.arange(n, device=device) + 1) / n - 1 for n in self.grid_size]
        centres = pad(torch.cartesian_prod(*axes), (0, 0, 1, 0))
        return centres.expand(self.embeddings.shape[0], -1, -1)

    def cells(self, grid_size: tuple[int, int]) -> Tensor:
        """Row and column of the cell of a grid that each region's centre is in, (B, R, 2) int64."""
        size = self.boxes.new_tensor(grid_size)
        return torch.minimum((self.places() + 1) / 2 * size, size - 1).clamp(min=0).long()
