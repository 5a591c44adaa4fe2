"""What stands on a command line: numbers, and keys of a config with their values."""

import argparse
from pathlib import Path

import pytest

from xmodal.engine.command_line import Options, not_negative, positive, read_value, write_value


@pytest.mark.parametrize('text', ['a dog', 'nan', 'inf', '-1', '٣'])
@pytest.mark.parametrize(
    ('kind', 'expected'), [(not_negative, 'of at least 0'), (positive, 'above 0')]
)
def test_another_text_is_told_with_what_was_expected(kind, expected, text):
    with pytest.raises(
        argparse.ArgumentTypeError, match=f'expected a number {expected}, got {text}'
    ):
        kind(text)


def test_zero_is_not_negative_and_not_positive():
    assert not_negative('0') == 0 and positive('1e-3') == 1e-3
    with pytest.raises(argparse.ArgumentTypeError, match='above 0, got 0'):
        positive('0')


def test_spaces_in_a_path_stay():
    parser = argparse.ArgumentParser()
    parser.add_argument('--cfg-options', nargs='+', action=Options)
    given = ['a.b=/My Disk/a.pth', "c='x y'", 'd=1e-3', 'e=[1, 2]', 'f=None', 'g=(a,b)', 'h=True']
    given += ['i=runs (old)/a.pth', 'j=a, b', 'k=["x y.json", "b (c), d"]', 'l=[(1,2),[a, b]]']
    given += ["m='[None, 1e-3]'", 'n=(1)', 'o=1,2', "p='a, b'", 'q="it\'s, 1"', "r='a','b'"]
    found = parser.parse_args(['--cfg-options', *given]).cfg_options
    assert found == {
        'a.b': '/My Disk/a.pth', 'c': 'x y', 'd': 0.001, 'e': [1, 2], 'f': None, 'g': ('a', 'b'),
        'h': True, 'i': 'runs (old)/a.pth', 'j': ['a', 'b'],
        'k': ['x y.json', 'b (c), d'], 'l': [(1, 2), ['a', 'b']], 'm': [None, 0.001],
        'n': (1,), 'o': [1, 2], 'p': 'a, b', 'q': "it's, 1", 'r': ['a', 'b'],
    }  # fmt: skip


def test_a_path_with_a_comma_is_no_list():
    assert read_value(write_value(Path('a, b/c.pth'))) == 'a, b/c.pth'
