"""Token sets."""

import torch

from xmodal.structures import Tokens


def test_token_sets_of_different_lengths_join_with_padding_and_a_mask():
    short = Tokens(torch.ones(2, 3, 4), boxes=torch.ones(2, 3, 4))
    mask = torch.tensor([[True, True, True, False, False]])
    long = Tokens(torch.full((1, 5, 4), 2.0), mask, boxes=torch.ones(1, 5, 4))
    joined = Tokens.join([short, long])
    assert joined.embeddings.shape == (3, 5, 4) and joined.boxes.shape == (3, 5, 4)
    assert joined.attention_mask.tolist() == [[True] * 3 + [False] * 2] * 3
    assert joined.embeddings[0].sum() == 12 and joined.embeddings[2].sum() == 40


def test_token_sets_of_equal_length_join_without_a_mask():
    parts = [Tokens(torch.rand(2, 3, 4)), Tokens(torch.rand(1, 3, 4))]
    joined = Tokens.join(parts)
    assert joined.attention_mask is None and joined.boxes is None
    assert torch.equal(joined.embeddings, torch.cat([part.embeddings for part in parts]))
    assert joined.full_mask().all() and joined.full_mask().shape == (3, 3)
