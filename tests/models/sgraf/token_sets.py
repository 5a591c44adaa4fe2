"""Ragged token sets."""

import torch
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence

from xmodal.structures import Tokens

WIDTH, REGIONS = 24, 5
LENGTHS = (6, 3, 80, 4, 6, 3, 12)


def token_sets(lengths, width=WIDTH):
    """Random normalised tokens, (L, D) each."""
    return [normalize(torch.randn(length, width), dim=-1) for length in lengths]


def padded(sets, filling=0.0):
    """Token sets as one batch."""
    embeddings = pad_sequence(sets, batch_first=True, padding_value=filling)
    lengths = torch.tensor([len(tokens) for tokens in sets])
    return Tokens(embeddings, torch.arange(embeddings.shape[1]) < lengths[:, None])
