"""Encoded images and texts."""

import pytest
import torch
from torch.nn.functional import normalize

from xmodal.structures import require_unit_length


@pytest.mark.parametrize('dtype', [torch.float32, torch.float16, torch.bfloat16])
def test_normalised_embeddings_are_taken_in_any_precision(dtype):
    embedding = normalize(torch.randn(50, 256), dim=-1).to(dtype)
    embedding[3] = 0  # of a set of no tokens
    require_unit_length(embedding, None)
    require_unit_length(None, None)  # of a model with tokens alone


def test_embeddings_that_are_not_normalised_are_refused():
    """Longer ones would be found more often, as if they were more similar."""
    embedding = normalize(torch.randn(4, 8), dim=-1) * torch.tensor([[1.0], [1.0], [1.0], [2.5]])
    message = 'object makes embeddings of length 1 to 2.5, expected 1: .*normalize'
    with pytest.raises(ValueError, match=message):
        require_unit_length(embedding, object())


@pytest.mark.parametrize('value', [torch.nan, torch.inf])
def test_embeddings_that_are_not_finite_are_refused(value):
    """An index of them finds nothing, or anything."""
    embedding = normalize(torch.randn(4, 8), dim=-1)
    embedding[2, 3] = value
    with pytest.raises(ValueError, match='object makes embeddings that are not finite'):
        require_unit_length(embedding, object())
