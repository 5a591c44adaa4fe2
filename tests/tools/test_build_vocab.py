"""A vocabulary from captions."""

import json
import sys

import pytest

from tools.dataset_converters import build_vocab


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, 'argv', ['build_vocab.py', *map(str, arguments)])
    build_vocab.main()


@pytest.fixture
def captions(tmp_path):
    file = tmp_path / 'train_caps.txt'
    file.write_text('A dog. The dog\na DOG, a cat\nthe bird\n')
    return file


def test_words_are_sorted_by_frequency_and_then_alphabetically(captions, tmp_path, monkeypatch):
    out = tmp_path / 'vocab.json'
    run(monkeypatch, captions, '--out', out, '--least', 2)
    content = json.loads(out.read_text())
    # a 3, dog 3, the 2; '.', ',', cat and bird once
    assert content['word2idx'] == {
        '<pad>': 0,
        '<start>': 1,
        '<end>': 2,
        '<unk>': 3,
        'a': 4,
        'dog': 5,
        'the': 6,
    }
    assert content['idx2word']['5'] == 'dog' and content['idx'] == 7


def test_words_that_occur_fewer_than_four_times_are_unknown(captions, tmp_path, monkeypatch):
    out = tmp_path / 'vocab.json'
    captions.write_text(captions.read_text() + 'a\n')
    run(monkeypatch, captions, '--out', out)
    assert list(json.loads(out.read_text())['word2idx'])[4:] == ['a']


def test_a_web_page_is_refused_and_a_caption_that_begins_with_a_mark_is_not(captions):
    captions.write_text('<PERSON> walks a dog\n')
    assert build_vocab.read_captions(captions) == ['<PERSON> walks a dog']
    for content in ('<!DOCTYPE html>\n', '<HTML>\n', '<?xml version="1.0"?>\n', '[1]\n', '{}\n'):
        captions.write_text(content)
        with pytest.raises(ValueError, match='begins with .* expected one caption a line'):
            build_vocab.read_captions(captions)


def test_an_existing_vocabulary_is_not_overwritten(captions, tmp_path, monkeypatch):
    out = tmp_path / 'vocab.json'
    out.write_text('of another run')
    with pytest.raises(FileExistsError, match='--out=.*already exists'):
        run(monkeypatch, captions, '--out', out)
    assert out.read_text() == 'of another run'
