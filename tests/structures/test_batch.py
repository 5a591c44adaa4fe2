"""Which images and texts of a batch belong together."""

import torch

from xmodal.structures import EMPTY, Identities, ImageTextBatch, Keys


def test_pairs_of_one_image_or_of_one_text_are_positives_of_each_other():
    # Pairs 0 and 2 show one image, 1 and 2 have one text.
    identities = Identities(torch.tensor([1, 2, 1, 3]), torch.tensor([10, 11, 11, 12]))
    expected = [[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]]
    assert identities.positives().int().tolist() == expected


def test_positives_among_other_pairs_are_a_row_a_pair():
    identities = Identities(torch.tensor([1, 5, 2]), torch.tensor([9, 8, 8]))
    others = Identities(torch.tensor([1, 2]), torch.tensor([7, 8]))
    assert identities.positives(others).tolist() == [[True, False], [False, True], [False, True]]


def test_empty_keys_are_positives_of_no_pair():
    keys = Keys(
        torch.zeros(3, 2),
        torch.zeros(3, 2),
        torch.tensor([1, 2, EMPTY]),
        torch.tensor([7, 8, EMPTY]),
    )
    identities = Identities(torch.tensor([1, 5, 2]), torch.tensor([9, 8, 8]))
    positives = identities.positives(keys.identities)
    assert positives.tolist() == [[True, False, False], [False, True, False], [False, True, False]]
    assert keys.is_empty.tolist() == [False, False, True]


def test_joined_keys_are_followed_by_the_others():
    ids = torch.arange(3)
    first = Keys(torch.zeros(3, 2), torch.zeros(3, 2), ids, ids)
    second = Keys(torch.ones(2, 2), torch.ones(2, 2), ids[:2] + 10, ids[:2] + 20)
    joined = first.join(second)
    assert joined.image_ids.tolist() == [0, 1, 2, 10, 11]
    assert joined.text_ids.tolist() == [0, 1, 2, 20, 21]
    assert joined.image_embeddings.sum(1).tolist() == [0, 0, 0, 2, 2]


def test_texts_belong_to_images_by_the_id_of_their_image():
    batch = ImageTextBatch(
        images=torch.zeros(2, 3, 4, 4),
        input_ids=torch.zeros(3, 5, dtype=torch.int64),
        attention_mask=torch.ones(3, 5, dtype=torch.bool),
        image_ids=torch.tensor([7, 8]),
        text_ids=torch.tensor([1, 2, 3]),
        text_image_ids=torch.tensor([7, 7, 8]),
    )
    assert batch.texts_of_images.tolist() == [[True, True, False], [False, False, True]]
