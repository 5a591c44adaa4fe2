"""Texts of different lengths in one tensor."""

import pytest
import torch

from xmodal.structures import PackedTexts
from xmodal.structures.texts import run_indices

LENGTHS = [3, 1, 4, 2]


@pytest.fixture(params=[(), (5,)], ids=['word pieces', 'embeddings'])
def texts(request):
    return [torch.randint(1, 99, (length, *request.param)) for length in LENGTHS]


def padded(texts):
    values = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True)
    lengths = torch.tensor([len(text) for text in texts])
    return values, torch.arange(values.shape[1]) < lengths[:, None]


def assert_holds(packed, texts):
    assert packed.lengths.tolist() == [len(text) for text in texts]
    assert packed.values.equal(torch.cat(texts))


def test_lists_and_padded_batches_pack_to_the_same_texts(texts):
    assert_holds(PackedTexts.from_list(texts), texts)
    values, mask = padded(texts)
    filled = values.clone()
    filled[~mask] = 7  # the content of the padding does not matter
    assert_holds(PackedTexts.from_padded(filled, mask), texts)


def test_padding_restores_a_batch(texts):
    for actual, expected in zip(PackedTexts.from_list(texts).pad(), padded(texts), strict=True):
        assert actual.equal(expected)


def test_texts_are_selected_in_any_order_and_joined(texts):
    packed = PackedTexts.from_list(texts)
    rows = [2, 0, 2, 3]
    assert_holds(packed.select(torch.tensor(rows)), [texts[row] for row in rows])
    assert_holds(PackedTexts.join([packed, packed.select(torch.tensor([1]))]), [*texts, texts[1]])


def test_indices_of_runs_are_those_of_a_literal_loop():
    lengths, rows = torch.tensor([2, 0, 3, 1]), torch.tensor([3, 1, 2, 0, 2])
    runs = torch.arange(6).split(lengths.tolist())
    assert run_indices(lengths, rows).equal(torch.cat([runs[row] for row in rows]))
    assert run_indices(lengths, rows[:0]).tolist() == []
