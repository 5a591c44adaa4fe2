"""The normal forms of answers in VQA's evaluation and LXMERT's table."""

import re

import pytest

from xmodal.datasets.answers import join_marks, normalize_answer, normalize_lxmert_answer
from xmodal.models.base import build_tokenizer


@pytest.mark.parametrize(
    ('answer', 'expected'),
    [
        # articles, number words, case
        ('The Dog', 'dog'),
        ('a cat and an owl', 'cat and owl'),
        ('another', 'another'),
        ('None', '0'),
        ('two dogs', '2 dogs'),
        ('Ten', '10'),
        ('eleven', 'eleven'),
        # a mark between two letters becomes a space; next to a space it is deleted
        ('black/white', 'black white'),
        ('black / white', 'black white'),
        ('t-shirt', 't shirt'),
        ('yes!', 'yes'),
        ('yes, sir', 'yes sir'),
        ('red,white', 'red white'),
        ('(left) side', 'left side'),
        # a comma within a number deletes all marks
        ('1,000', '1000'),
        ('1,000-2', '10002'),
        # full stops are deleted, decimal points stay
        ('Sailboats.', 'sailboats'),
        ('U.S.A.', 'usa'),
        ('0.5', '0.5'),
        ('5.', '5'),
        ('a.5', 'a.5'),
        # apostrophes
        ('dont know', "don't know"),
        ("don't know", "don't know"),
        ('couldntve', 'couldntve'),
        ("couldn'tve", "couldn't've"),
        ("couldnt've", "couldn't've"),
        ("yall'd've", "y'all'd've"),
        ('twas', "'twas"),
        ("somebody'd", 'somebodyd'),
        ('its', 'its'),
        ("man's", "man's"),
        # others
        ('what is:', 'what is:'),  # the official list of marks has no colon
        ('', ''),
        ('the', ''),
    ],
)
def test_answers_are_normalised_as_in_the_official_script(answer, expected):
    assert normalize_answer(answer) == expected


def test_normalising_twice_changes_nothing():
    for answer in ('The two-piece t-shirt, dont ask', '1,000', 'U.S.A.', "y'alld've"):
        once = normalize_answer(answer)
        assert normalize_answer(once) == once


@pytest.mark.parametrize(
    ('answer', 'expected'),
    [
        ('Yes', 'yes'),
        ('A man.', 'man'),
        ('the  Woman', 'woman'),
        ('an apple', 'apple'),
        ('a the dog', 'dog'),
        ('ten', '10'),
        ('one', '1'),
        ('zero', 'zero'),
        ('two dogs', 'two dogs'),
        ('grey', 'gray'),
        ('t-shirt', 't-shirt'),
        ('', ''),
        ('.', ''),
    ],
)
def test_answers_are_normalised_as_in_lxmerts_table(answer, expected):
    assert normalize_lxmert_answer(answer) == expected


def test_answers_of_word_pieces_are_written_as_people_write_them(tmp_path):
    answers = [
        *('10:30', '1.5', '1,000', '1, 2', "don't know", "5'10", 't-shirt', '4 1/2', '50%', '$5'),
        *('#1', '594-8939', 'st. louis', 'no, it is', 'black & white', 'yes'),
    ]
    pieces = sorted({piece for answer in answers for piece in re.findall(r'\w+|[^\w\s]', answer)})
    file = tmp_path / 'vocab.txt'
    file.write_text('\n'.join(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *pieces]))
    tokenizer = build_tokenizer(str(file))
    decoded = tokenizer.batch_decode(tokenizer(answers)['input_ids'], skip_special_tokens=True)
    assert decoded[:2] != answers[:2]
    assert [join_marks(answer) for answer in decoded] == answers
