"""The queue of momentum vectors."""

import pytest
import torch

from xmodal.models.base.queue import EMPTY, Keys, MomentumQueue


def numbered_keys(first, count, dims=2):
    numbers = torch.arange(first, first + count)
    vectors = numbers[:, None].float().expand(count, dims)
    return Keys(vectors, -vectors, numbers, 1000 + numbers)


def test_a_new_queue_is_empty():
    keys = MomentumQueue(5, 2).keys()
    assert (keys.image_ids == EMPTY).all()
    assert (keys.text_ids == EMPTY).all()


@pytest.mark.parametrize('size', [1, 3, 4, 7, 10, 16])
def test_it_holds_the_last_entries_whatever_the_batch(size):
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


def test_writing_wraps_around_where_it_stands():
    queue = MomentumQueue(5, 2)
    queue.write(numbered_keys(0, 4))
    queue.write(numbered_keys(4, 3))
    assert queue.image_ids.tolist() == [5, 6, 2, 3, 4]
    assert queue.pointer == 2


def test_entries_that_were_read_are_safe_from_later_writing():
    queue = MomentumQueue(4, 2)
    queue.write(numbered_keys(0, 4))
    keys = queue.keys()
    queue.write(numbered_keys(4, 4))
    assert keys.image_ids.tolist() == [0, 1, 2, 3]


def test_a_queue_of_length_zero_holds_nothing():
    queue = MomentumQueue(0, 2)
    queue.write(numbered_keys(0, 3))
    assert len(queue.keys().image_ids) == 0


def test_it_travels_in_the_state_dict():
    queue, other = MomentumQueue(5, 2), MomentumQueue(5, 2)
    queue.write(numbered_keys(0, 7))
    other.load_state_dict(queue.state_dict())
    for mine, copied in zip(queue.keys(), other.keys(), strict=True):
        assert mine.equal(copied)
    assert other.pointer == 2


def test_keys_of_the_same_image_or_the_same_text_are_the_same():
    keys = Keys(
        torch.zeros(3, 2),
        torch.zeros(3, 2),
        torch.tensor([1, 2, EMPTY]),
        torch.tensor([7, 8, EMPTY]),
    )
    found = keys.same(torch.tensor([1, 5, 2]), torch.tensor([9, 8, 8]))
    assert found.tolist() == [[True, False, False], [False, True, False], [False, True, False]]
