"""Extrapolated times, against planted costs that are added up one by one."""

import numpy as np
import pytest

from xmodal.benchmark.sgraf_costs import TEST_SETS, SetSize, caption_lengths, extrapolate

IMAGE, CAPTION, PAIR = 5.0, 3.0, 0.25  # seconds of an image, of a caption, of an image and a word
MEASURED, TARGET = SetSize(3, 4, 10), SetSize(6, 8, 30)


def seconds(images, captions, words):
    return IMAGE * images + CAPTION * captions + PAIR * images * words


def test_images_and_captions_count_once():
    parts = seconds(*MEASURED), IMAGE * 3, CAPTION * 4
    assert extrapolate(*parts, MEASURED, TARGET) == pytest.approx(seconds(*TARGET))


def test_with_shards_images_and_captions_count_once_in_each():
    parts = (np.array([value, 2 * value]) for value in (seconds(*MEASURED), IMAGE * 3, CAPTION * 4))
    words = [2, 3, 5, 5, 2, 4, 4, 5]
    assert (len(words), sum(words)) == TARGET[1:]
    total = 0
    for _ in (0, 2, 4):  # the first image of a shard
        for caption in (0, 2, 4, 6):
            total += seconds(2, 2, sum(words[caption : caption + 2]))
    actual = extrapolate(*parts, MEASURED, TARGET, shard=2)
    np.testing.assert_allclose(actual, [total, 2 * total])


@pytest.mark.parametrize(
    ('data', 'test_set', 'percentile', 'longest'),
    [('f30k', 'Flickr30K', 35, 77), ('coco', 'COCO 1K', 22, 52)],
)
def test_captions_are_as_long_as_those_of_the_test_set(data, test_set, percentile, longest):
    size = TEST_SETS[test_set]
    lengths = caption_lengths(data, size.captions)
    assert np.mean(lengths) == pytest.approx(size.words / size.captions, rel=0.005)
    assert np.percentile(lengths, 99) == percentile
    assert max(lengths) <= longest and len(set(lengths[:100])) > 5  # shuffled
