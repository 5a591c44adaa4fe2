"""Words and their ids."""

import json

import pytest

from xmodal.vocabulary import SPECIAL_WORDS, Vocabulary, split_words


def test_words_are_split_as_the_penn_treebank_does():
    # By hand, after the rules of the treebank's tokenizer script.
    assert split_words('The dog\'s ball isn\'t red, "really" (50%)!') == [
        'the',
        'dog',
        "'s",
        'ball',
        'is',
        "n't",
        'red',
        ',',
        '``',
        'really',
        "''",
        '(',
        '50',
        '%',
        ')',
        '!',
    ]


def test_the_full_stop_of_every_sentence_is_a_separate_word():
    assert split_words('Two men. They wear t-shirts.') == [
        'two',
        'men',
        '.',
        'they',
        'wear',
        't-shirts',
        '.',
    ]
    assert split_words('a u.s. flag on floor 3. up') == [
        'a',
        'u.s.',
        'flag',
        'on',
        'floor',
        '3.',
        'up',
    ]


def test_words_need_no_download(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError('NLTK looked for data')

    monkeypatch.setattr('nltk.data.find', refuse)
    assert split_words("it's raining.") == ['it', "'s", 'raining', '.']


def test_a_caption_becomes_word_ids_between_start_and_end():
    vocabulary = Vocabulary([*SPECIAL_WORDS, 'a', 'dog'])
    assert vocabulary.encode('A DOG zzz') == (1, 4, 5, 3, 2)
    assert vocabulary.encode('') == (1, 2)


def test_published_vocabularies_are_read_in_any_order(tmp_path):
    words = {'dog': 5, '<pad>': 0, '<start>': 1, 'a': 4, '<end>': 2, '<unk>': 3}
    file = tmp_path / 'vocab.json'
    inverse = {str(word_id): word for word, word_id in words.items()}
    file.write_text(json.dumps({'word2idx': words, 'idx2word': inverse, 'idx': 6}))
    vocabulary = Vocabulary.read(file)
    assert vocabulary.word_ids == words and len(vocabulary) == 6
    vocabulary.write(tmp_path / 'again.json')
    assert json.loads((tmp_path / 'again.json').read_text()) == json.loads(file.read_text())


@pytest.mark.parametrize(
    'content, message',
    [
        ('{"words": []}', "key 'word2idx' is missing"),
        ('not json', 'Expecting value'),
        ('version https://git-lfs.github.com/spec/v1', 'Git LFS pointer'),
        ('{"word2idx": {"<pad>": 0, "<start>": 1, "<end>": 2, "<unk>": 4}}', 'are not 0, 1, 2'),
        ('{"word2idx": {"a": 0, "<start>": 1, "<end>": 2, "<unk>": 3}}', "words 0 to 3 are .'a'"),
    ],
)
def test_an_invalid_vocabulary_file_is_named_with_its_error(tmp_path, content, message):
    file = tmp_path / 'vocab.json'
    file.write_text(content)
    with pytest.raises(
        ValueError, match=rf'vocab\.json (cannot be read|is not valid JSON): .*{message}'
    ):
        Vocabulary.read(file)


def test_a_byte_order_mark_does_not_belong_to_the_vocabulary(tmp_path):
    file = tmp_path / 'vocab.json'
    words = {word: index for index, word in enumerate((*SPECIAL_WORDS, 'a'))}
    file.write_text(json.dumps({'word2idx': words}), encoding='utf-8-sig')
    assert Vocabulary.read(file).word_ids == words


def test_the_error_for_a_missing_vocabulary_says_how_to_get_one(tmp_path):
    with pytest.raises(FileNotFoundError, match='build-vocab'):
        Vocabulary.read(tmp_path / 'vocab.json')


def test_the_fingerprint_depends_on_the_order_of_the_words():
    one, two, other = (
        Vocabulary([*SPECIAL_WORDS, *words]) for words in (['a', 'b'], ['a', 'b'], ['b', 'a'])
    )
    assert one.fingerprint == two.fingerprint != other.fingerprint
