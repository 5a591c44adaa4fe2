"""The queue of momentum embeddings."""

import pytest
import torch

from xmodal.models.base import MomentumQueue
from xmodal.structures import EMPTY, Keys


def numbered_keys(first, count, dims=2):
    ids = torch.arange(first, first + count)
    embeddings = ids[:, None].float().expand(count, dims)
    return Keys(embeddings, -embeddings, ids, 1000 + ids)


def test_a_new_queue_is_empty():
    keys = MomentumQueue(5, 2).keys()
    assert (keys.image_ids == EMPTY).all()
    assert (keys.text_ids == EMPTY).all()
    assert keys.is_empty.all()


@pytest.mark.parametrize('size', [1, 3, 4, 7, 10, 16])
def test_it_holds_the_last_entries_for_any_batch_size(size):
    queue, written = MomentumQueue(7, 2), 0
    for _ in range(9):
        queue.write(numbered_keys(written, size))
        written += size
        keys = queue.keys()
        expected = set(range(max(0, written - 7), written))
        assert set(keys.image_ids.tolist()) - {EMPTY} == expected
        real = keys.image_ids != EMPTY
        assert keys.image_embeddings[real, 0].tolist() == keys.image_ids[real].tolist()
        assert keys.text_embeddings[real, 0].tolist() == (-keys.image_ids[real]).tolist()
        assert keys.text_ids[real].tolist() == (1000 + keys.image_ids[real]).tolist()


def test_writing_wraps_around_at_the_end():
    queue = MomentumQueue(5, 2)
    queue.write(numbered_keys(0, 4))
    queue.write(numbered_keys(4, 3))
    assert queue.image_ids.tolist() == [5, 6, 2, 3, 4]
    assert queue.pointer == 2


def test_later_writing_does_not_change_keys_that_were_read():
    queue = MomentumQueue(4, 2)
    queue.write(numbered_keys(0, 4))
    keys = queue.keys()
    queue.write(numbered_keys(4, 4))
    assert keys.image_ids.tolist() == [0, 1, 2, 3]


def test_a_queue_of_length_zero_holds_nothing():
    queue = MomentumQueue(0, 2)
    queue.write(numbered_keys(0, 3))
    assert len(queue.keys().image_ids) == 0


def test_it_is_part_of_the_state_dict():
    queue, other = MomentumQueue(5, 2), MomentumQueue(5, 2)
    queue.write(numbered_keys(0, 7))
    other.load_state_dict(queue.state_dict())
    for original, copied in zip(queue.keys(), other.keys(), strict=True):
        assert original.equal(copied)
    assert other.pointer == 2


def test_embeddings_that_are_not_finite_are_written_as_empty_entries():
    queue, keys = MomentumQueue(5, 2), numbered_keys(0, 3)
    keys.image_embeddings[1, 0], keys.text_embeddings[2, 1] = torch.nan, torch.inf
    queue.write(keys)
    written = queue.keys()
    assert written.image_ids.tolist() == [0, EMPTY, EMPTY, EMPTY, EMPTY]
    assert written.image_embeddings.isfinite().all() and written.text_embeddings.isfinite().all()
