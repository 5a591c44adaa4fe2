"""From images and texts to a batch."""

import json
from pathlib import Path

import pytest
import torch

from xmodal.datasets import stack_images
from xmodal.models.base import build_tokenizer
from xmodal.registry import MODELS

CLS, SEP = 2, 3


@pytest.fixture
def preprocessor(vocabulary):
    def make(max_length=6, **tokenizer):
        return MODELS.build(
            dict(
                type='ImageTextPreprocessor',
                mean=[10.0, 20.0, 30.0],
                std=[2.0, 4.0, 5.0],
                tokenizer=dict(pretrained=vocabulary, **tokenizer),
                max_length=max_length,
            )
        )

    return make


def test_images_are_normalised(preprocessor, samples):
    data = samples(['word0', 'word1'])
    images = preprocessor()(data)['inputs'].images
    assert images.shape == (2, 3, 24, 24)
    expected = (data['inputs'][1][2].float() - 30) / 5
    torch.testing.assert_close(images[1, 2], expected)


def test_batches_are_planes_whatever_the_layout_of_the_images(preprocessor):
    pixels = torch.arange(2 * 3 * 4 * 5, dtype=torch.uint8).view(2, 3, 4, 5)
    by_opencv = pixels.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    for images in (pixels, by_opencv):
        batch = stack_images([dict(inputs=image, data_samples=None) for image in images])
        prepared = preprocessor().prepare_images(batch['inputs'])
        assert prepared.is_contiguous()
        for channel, (mean, std) in enumerate([(10, 2), (20, 4), (30, 5)]):
            expected = (pixels[:, channel].float() - mean) / std
            torch.testing.assert_close(prepared[:, channel], expected, rtol=0, atol=0)


def test_texts_of_another_vocabulary_give_one_warning(preprocessor, samples, monkeypatch):
    warnings = []
    monkeypatch.setattr(
        'xmodal.models.base.preprocessor.print_log',
        lambda text, *_, **__: warnings.append(text),
    )
    preprocessor()(samples(['word0 word2 word1 word0 strange']))
    assert not warnings
    foreign = preprocessor()
    for _ in range(2):
        foreign(samples(['a strange word0', 'text']))
    (warning,) = warnings
    assert warning.startswith('75% of the words of the first 2 texts are unknown')
    assert '(a, strange, text)' in warning


def test_unknown_words_are_named_as_they_are_written_up_to_where_a_text_is_cut(preprocessor):
    texts = ['Stra\u0308nge word0, strange', 'word0', 'word1 word2 word3 other cut']
    tokenizing = preprocessor(max_length=6)
    ids, _ = tokenizing.tokenize(texts)
    expected = ['Stra\u0308nge', ',', 'strange', 'other']
    assert tokenizing.unknown_words(texts, ids) == expected


def test_texts_are_tokenised_and_padded(preprocessor, samples):
    batch = preprocessor()(samples(['word0 word2', 'word1', 'strange']))['inputs']
    assert batch.input_ids.tolist() == [[CLS, 5, 7, SEP], [CLS, 6, SEP, 0], [CLS, 1, SEP, 0]]
    assert batch.attention_mask.dtype == torch.bool
    assert batch.attention_mask.sum(1).tolist() == [4, 3, 3]


def test_long_texts_are_cut(preprocessor, samples):
    batch = preprocessor(max_length=4)(samples(['word0 word1 word2 word3']))['inputs']
    assert batch.input_ids.tolist() == [[CLS, 5, 6, SEP]]


def test_albef_texts_have_no_sep(preprocessor, samples):
    batch = preprocessor(add_sep=False)(samples(['word0 word1', 'word2']))['inputs']
    assert batch.input_ids.tolist() == [[CLS, 5, 6], [CLS, 7, 0]]


def test_images_and_captions_have_identities(preprocessor, samples):
    batch = preprocessor()(samples(['word0', 'word1', 'word0']))['inputs']
    assert batch.image_ids.tolist() == [0, 1, 2]
    assert batch.text_image_ids.tolist() == [0, 1, 2]
    assert batch.text_ids[0] == batch.text_ids[2] != batch.text_ids[1]


def test_in_test_mode_an_image_brings_all_its_captions(preprocessor, samples):
    data = samples([['word0', 'word1'], ['word2'], ['word3', 'word4', 'word5']])
    batch = preprocessor()(data)['inputs']
    assert len(batch.images) == 3
    assert batch.input_ids[:, 1].tolist() == [5, 6, 7, 8, 9, 10]
    assert batch.text_image_ids.tolist() == [0, 0, 1, 2, 2, 2]


def test_a_directory_and_a_file_give_equal_tokens(vocabulary, tmp_path):
    build_tokenizer(vocabulary).save_pretrained(tmp_path)
    ids = [build_tokenizer(x)('word3 word4')['input_ids'] for x in (vocabulary, str(tmp_path))]
    assert ids[0] == ids[1]


def test_a_vocabulary_that_is_not_there_is_a_clear_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r'tokenizer.pretrained=(.|\n)*make-shapes'):
        build_tokenizer(str(tmp_path / 'vocab.txt'))


def test_a_roberta_tokenizer_reads_byte_pairs(tmp_path):
    words = ['<s>', '<pad>', '</s>', '<unk>', 'a', 'b', 'ab', 'Ġ', 'Ġab', '<mask>']
    word_ids = {word: word_id for word_id, word in enumerate(words)}
    (tmp_path / 'vocab.json').write_text(json.dumps(word_ids))
    (tmp_path / 'merges.txt').write_text('#version: 0.2\na b\nĠ ab\n')
    tokenizer = build_tokenizer(str(tmp_path), family='roberta')
    actual = tokenizer(['ab ab', 'a'], padding='longest')
    assert actual['input_ids'] == [[0, 6, 8, 2], [0, 4, 2, 1]]
    assert actual['attention_mask'] == [[1, 1, 1, 1], [1, 1, 1, 0]]


def test_another_family_of_tokenizers_is_an_error():
    with pytest.raises(ValueError, match="family='clip', expected one of"):
        build_tokenizer('anything', family='clip')


@pytest.mark.parametrize('end', ['\n', '\r\n'])
def test_a_line_of_a_vocabulary_ends_with_a_line_feed_alone(vocabulary, tmp_path, end):
    special = Path(vocabulary).read_text().split()[:5]
    file = tmp_path / 'vocab.txt'
    file.write_text(end.join([*special, 'a\x85b', 'word', '']), encoding='utf-8', newline='')
    assert build_tokenizer(str(file))('word', add_special_tokens=False)['input_ids'] == [6]
