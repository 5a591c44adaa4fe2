"""Texts of different lengths in one tensor."""

from typing import NamedTuple

import torch
from torch import Tensor


class PackedTexts(NamedTuple):
    """Texts of different lengths, one after the other, without padding.

    One large tensor moves between devices and ranks at the size of its words; a tensor for each
    text would bring the memory of all along.

    Attributes:
        values: word pieces, (W,) int64, or word embeddings, (W, D), of the W words of all texts.
        lengths: number of words of each text, (T,) int64, on the CPU.
    """

    values: Tensor
    lengths: Tensor

    @classmethod
    def from_padded(cls, values: Tensor, attention_mask: Tensor) -> 'PackedTexts':
        """Packs (T, N) or (T, N, D) with a mask (T, N) bool, False for the padding at the end."""
        return cls(values[attention_mask], attention_mask.sum(1).cpu())

    @classmethod
    def from_list(cls, texts: list[Tensor]) -> 'PackedTexts':
        """Packs one tensor per text, (L,) or (L, D) each."""
        return cls(torch.cat(texts), torch.tensor([len(text) for text in texts]))

    @classmethod
    def join(cls, parts: list['PackedTexts']) -> 'PackedTexts':
        """The texts of all parts, one part after the other."""
        values, lengths = zip(*parts, strict=True)
        return cls(torch.cat(values), torch.cat(lengths))

    def select(self, rows: Tensor) -> 'PackedTexts':
        """The texts of the given rows, (K,) int64, in this order."""
        words = run_indices(self.lengths, rows)
        return PackedTexts(self.values[words.to(self.values.device)], self.lengths[rows])

    def pad(self) -> tuple[Tensor, Tensor]:
        """Values padded with zeros to the longest text, (T, N) or (T, N, D), and their mask."""
        lengths = self.lengths.to(self.values.device)
        mask = torch.arange(int(self.lengths.max()), device=lengths.device) < lengths[:, None]
        padded = self.values.new_zeros(*mask.shape, *self.values.shape[1:])
        padded[mask] = self.values
        return padded, mask

    def to(self, device: torch.device | str) -> 'PackedTexts':
        """The same texts on a device; the lengths stay on the CPU."""
        return self._replace(values=self.values.to(device))


def run_indices(lengths: Tensor, rows: Tensor) -> Tensor:
    """Indices of selected runs in a sequence of adjacent runs.

    Args:
        lengths: length of each run, (T,) int64.
        rows: runs to select, (K,) int64.

    Returns:
        The indices of the elements of all selected runs, one run after the other, int64.
    """
    starts, selected = lengths.cumsum(0) - lengths, lengths[rows]
    shifts = starts[rows] - (selected.cumsum(0) - selected)
    return torch.arange(int(selected.sum())) + shifts.repeat_interleave(selected)
