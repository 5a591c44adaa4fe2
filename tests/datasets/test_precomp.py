"""Precomputed region features."""

import pickle

import numpy as np
import pytest
import torch

from xmodal.datasets import PrecompDataset, stack_regions

REGIONS, WIDTH = 3, 5


@pytest.fixture
def write(tmp_path):
    """Writes the files of a split and returns their folder."""

    def write(features, captions, ids=None, boxes=None):
        np.save(tmp_path / 'train_ims.npy', features)
        (tmp_path / 'train_caps.txt').write_text('\n'.join(captions) + '\n', 'utf-8')
        if ids is not None:
            (tmp_path / 'train_ids.txt').write_text('\n'.join(map(str, ids)) + '\n')
        if boxes is not None:
            np.save(tmp_path / 'train_boxes.npy', boxes)
        return str(tmp_path)

    return write


def random_features(images, dtype=np.float32):
    return np.random.default_rng(0).random((images, REGIONS, WIDTH)).astype(dtype) + 0.1


def texts(count):
    return [f'caption {index}' for index in range(count)]


def pairs(dataset, features):
    """The row of the features and the caption of every training sample."""
    rows_and_texts = []
    for sample in dataset:
        equal = (torch.from_numpy(features).float() == sample['inputs'].features).all(-1).all(-1)
        rows_and_texts.append((int(equal.nonzero()[0]), sample['data_samples'].text))
    return rows_and_texts


def test_one_row_per_image_has_its_captions_in_consecutive_lines(write):
    features = random_features(2)
    dataset = PrecompDataset('train', write(features, texts(10)))
    assert len(dataset) == 10
    assert pairs(dataset, features) == [(n // 5, f'caption {n}') for n in range(10)]


def test_repeated_rows_are_one_image(write):
    images = random_features(2)
    folder = write(images.repeat(5, 0), texts(10))
    dataset = PrecompDataset('train', folder, test_mode=True)
    assert [sample['data_samples'].text for sample in dataset] == [texts(10)[:5], texts(10)[5:]]
    assert [sample['data_samples'].image_id for sample in dataset] == [0, 1]
    assert torch.equal(dataset[1]['inputs'].features, torch.from_numpy(images[1]))


@pytest.mark.parametrize('ids', [None, range(6)], ids=['no ids', 'row numbers'])
def test_as_many_different_rows_as_captions_are_images_with_one_caption(write, ids):
    dataset = PrecompDataset('train', write(random_features(6), texts(6), ids), test_mode=True)
    assert [sample['data_samples'].text for sample in dataset] == [[text] for text in texts(6)]


def test_ids_per_caption_allow_different_numbers_of_captions_in_any_order(write):
    features = random_features(3)
    folder = write(features, texts(6), [70, 50, 70, 50, 50, 60])
    dataset = PrecompDataset('train', folder, test_mode=True)
    samples = [(s['data_samples'].image_id, s['data_samples'].text) for s in dataset]
    assert samples == [
        (70, ['caption 0', 'caption 2']),
        (50, ['caption 1', 'caption 3', 'caption 4']),
        (60, ['caption 5']),
    ]
    assert torch.equal(dataset[1]['inputs'].features, torch.from_numpy(features[1]))
    training = PrecompDataset('train', folder)
    assert [image for image, _ in pairs(training, features)] == [0, 1, 0, 1, 1, 2]


def test_rows_with_the_same_id_are_one_image(write):
    folder = write(random_features(2).repeat([2, 3], 0), texts(5), [9, 9, 4, 4, 4])
    dataset = PrecompDataset('train', folder, test_mode=True)
    counts = [(s['data_samples'].image_id, len(s['data_samples'].text)) for s in dataset]
    assert counts == [(9, 2), (4, 3)]


def test_rows_are_also_grouped_by_ids_that_are_not_numbers(write):
    folder = write(random_features(2).repeat(2, 0), texts(4), ['a.jpg', 'a.jpg', 'b.jpg', 'b.jpg'])
    dataset = PrecompDataset('train', folder)
    assert [s['data_samples'].image_id for s in dataset] == [0, 0, 1, 1]


def test_captions_per_image_is_used_where_the_features_of_an_image_differ(write):
    folder = write(random_features(6), texts(6))
    dataset = PrecompDataset('train', folder, captions_per_image=3, test_mode=True)
    assert [s['data_samples'].text for s in dataset] == [texts(6)[:3], texts(6)[3:]]


def test_max_images_keeps_only_the_captions_of_the_first_images(write):
    folder = write(random_features(4), texts(8))
    assert len(PrecompDataset('train', folder, max_images=3)) == 6
    assert len(PrecompDataset('train', folder, max_images=3, test_mode=True)) == 3


def test_features_stay_on_disk_and_are_returned_in_float32(write):
    dataset = PrecompDataset('train', write(random_features(2, np.float16), texts(2)))
    assert isinstance(dataset.features, np.memmap)
    assert dataset[0]['inputs'].features.dtype == torch.float32


def test_a_worker_maps_the_files_and_is_sent_none_of_their_content(write):
    boxes = np.tile([0.1, 0.2, 0.3, 0.4], (500, REGIONS, 1))
    features = random_features(500)
    dataset = PrecompDataset('train', write(features, texts(500), boxes=boxes), max_images=10)
    sent = pickle.dumps(dataset)
    assert len(sent) < min(features.nbytes, boxes.nbytes)
    received = pickle.loads(sent)
    assert isinstance(received.features, np.memmap) and isinstance(received.boxes, np.memmap)
    regions, expected = received[3]['inputs'], dataset[3]['inputs']
    assert torch.equal(regions.features, expected.features)
    assert torch.equal(regions.boxes, expected.boxes)


def test_only_newlines_separate_captions(write):
    captions = ['un café à côté', 'a line\u2028separator and a \x85 stay', 'windows\r']
    dataset = PrecompDataset('train', write(random_features(3), captions))
    assert [s['data_samples'].text for s in dataset] == [*captions[:2], 'windows']


def test_regions_of_zeros_are_padding_and_boxes_are_read(write):
    features = random_features(2)
    features[1, 2] = 0
    boxes = np.random.default_rng(1).random((2, REGIONS, 4))
    boxes.sort(2)
    dataset = PrecompDataset('train', write(features, texts(2), boxes=boxes))
    assert dataset[0]['inputs'].attention_mask.tolist() == [True, True, True]
    assert dataset[1]['inputs'].attention_mask.tolist() == [True, True, False]
    assert torch.allclose(dataset[1]['inputs'].boxes, torch.from_numpy(boxes[1]).float())


def test_a_batch_pads_images_with_different_numbers_of_regions(write):
    samples = list(PrecompDataset('train', write(random_features(2), texts(2))))
    shorter = samples[1]['inputs']
    samples[1]['inputs'] = shorter._replace(
        features=shorter.features[:2], attention_mask=shorter.attention_mask[:2]
    )
    batch = stack_regions(samples)
    assert batch['inputs'].features.shape == (2, REGIONS, WIDTH)
    assert batch['inputs'].attention_mask.tolist() == [[True] * 3, [True, True, False]]
    assert batch['inputs'].boxes is None
    assert [sample.text for sample in batch['data_samples']] == texts(2)


@pytest.mark.parametrize(
    'rows, captions, ids, options, message',
    [
        (3, 7, None, {}, r'train_ims\.npy has 3 rows and \S*train_caps\.txt has 7 captions: exp'),
        (4, 8, [1, 2, 3], {}, r'train_ids\.txt has 3 ids, expected one of these'),
        (3, 6, [1, 1, 1, 2, 2, 2], {}, r'train_ids\.txt has 2 different ids, expected 3'),
        (6, 6, None, dict(captions_per_image=4), r'captions_per_image=4 expected 1\.5 rows, or 6'),
        (3, 6, [1, 2, 1], {}, r'train_ids\.txt, lines 1 and 3: both are 1, but .* two images'),
        (
            3,
            6,
            ['a', 'b', 'b'],
            {},
            r'train_ids\.txt, lines 2 and 3: both are b, but .* two images',
        ),
        (4, 4, [1, 1, 2, 2], {}, r'train_ids\.txt, lines 1 and 2: both are 1, but rows 0 and 1'),
    ],
)
def test_counts_that_do_not_match_are_named_with_their_files(
    write, rows, captions, ids, options, message
):
    folder = write(random_features(rows), texts(captions), ids)
    with pytest.raises(ValueError, match=message):
        PrecompDataset('train', folder, **options)


def test_a_byte_order_mark_does_not_belong_to_the_first_caption_or_id(write, tmp_path):
    folder = write(random_features(2), texts(2), [7, 8])
    for name in ('caps', 'ids'):
        file = tmp_path / f'train_{name}.txt'
        file.write_text(file.read_text(), encoding='utf-8-sig')
    sample = PrecompDataset('train', folder, test_mode=True, captions_per_image=1)[0]
    assert sample['data_samples'].text == ['caption 0'] and sample['data_samples'].image_id == 7


def test_an_empty_caption_is_named_by_its_line(write):
    with pytest.raises(ValueError, match=r'train_caps\.txt, line 2 is empty'):
        PrecompDataset('train', write(random_features(3), ['one', ' ', 'three']))


def test_a_line_that_is_not_utf8_is_named(write, tmp_path):
    folder = write(random_features(2), texts(2))
    (tmp_path / 'train_caps.txt').write_bytes(b'fine\ncaf\xe9\n')
    with pytest.raises(ValueError, match=r'train_caps\.txt, line 2: not UTF-8'):
        PrecompDataset('train', folder)


def test_a_feature_that_is_not_a_number_is_named_when_the_dataset_is_built(write):
    features = random_features(4)
    features[2, 1, 0] = np.nan
    with pytest.raises(ValueError, match=r"train_ims\.npy, row 2 .*regions \[1\] .*'caption 2'"):
        PrecompDataset('train', write(features, texts(4)))


def test_an_unchecked_feature_that_is_not_a_number_is_named_when_it_is_read(write):
    features = random_features(500)
    features[251] = np.inf
    dataset = PrecompDataset('train', write(features, texts(500)))
    with pytest.raises(ValueError, match=r'row 251 .*contain NaN or infinity'):
        dataset[251]


def test_an_image_without_regions_is_named(write):
    features = random_features(2)
    features[1] = 0
    with pytest.raises(ValueError, match='row 1 .*all regions are zero'):
        PrecompDataset('train', write(features, texts(2)))


def test_arrays_with_another_layout_are_named(write):
    with pytest.raises(ValueError, match=r'train_ims\.npy is float32 \(4, 5\), expected floats'):
        PrecompDataset('train', write(random_features(4)[:, 0], texts(4)))
    with pytest.raises(ValueError, match=r'train_boxes\.npy is \(4, 3, 2\), expected \(4, 3, 4\)'):
        PrecompDataset('train', write(random_features(4), texts(4), boxes=np.zeros((4, 3, 2))))


@pytest.mark.parametrize('box', [[0, 0, 640, 480], [0.5, 0, 0.4, 1], [0, -1, 1, 1], [np.nan] * 4])
def test_an_invalid_box_is_named_with_its_row(write, box):
    boxes = np.tile([0.1, 0.2, 0.3, 0.4], (4, REGIONS, 1))
    boxes[2, 1] = box
    with pytest.raises(ValueError, match=r'train_boxes\.npy, row 2 .*: box 1 is .*, expected x1'):
        PrecompDataset('train', write(random_features(4), texts(4), boxes=boxes))


def test_missing_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match='dev_ims.npy does not exist'):
        PrecompDataset('dev', str(tmp_path))
