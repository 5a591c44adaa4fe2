"""Files that are no checkpoint, or no longer the one that was written."""

import argparse
from collections import OrderedDict

import pytest
import torch

from xmodal.checkpoint_file import find_damage, read_checkpoint, require_checkpoint
from xmodal.registry import MODELS

PICKLE = dict(_use_new_zipfile_serialization=False)  # files of PyTorch before 1.6


@pytest.fixture
def file(tmp_path):
    return tmp_path / 'mine.pth'


def save(file, content, **options):
    torch.save(content, file, **options)
    return file.read_bytes()


def test_whatever_byte_is_flipped_the_file_is_refused_or_reads_the_same(file):
    weights = OrderedDict(weight=torch.arange(6.0), bias=torch.ones(2))
    whole = save(file, {'state_dict': weights, 'meta': {'iter': 3}})
    refused = 0
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 0x10
        file.write_bytes(flipped)
        try:
            content = read_checkpoint(file)
        except ValueError as error:
            assert str(file) in str(error)
            refused += 1
        else:
            assert content['meta'] == {'iter': 3}, position
            assert all(torch.equal(content['state_dict'][k], v) for k, v in weights.items())
    assert refused > len(whole) // 4


def test_a_flipped_value_is_named_by_its_record(file):
    value = torch.full((1000,), 1.5)
    whole = bytearray(save(file, {'state_dict': {'w': value}}))
    whole[whole.index(value.numpy().tobytes()) + 2001] ^= 1
    file.write_bytes(whole)
    with pytest.raises(
        ValueError, match=r'mine\.pth \(\d+ bytes\) .*checksum of its record .*data'
    ):
        read_checkpoint(file)


def test_an_old_file_with_a_pickle_of_countless_lists_is_not_unpickled(file, monkeypatch):
    """Each of its bytes would take 56 bytes of memory."""
    monkeypatch.setattr('xmodal.checkpoint_file._MAX_OPERATIONS', 20_000)
    monkeypatch.setattr('torch.load', None)
    first = bytes.fromhex('8002') + b'K\x01.'
    file.write_bytes(first * 3 + bytes.fromhex('8002') + b']' * 30_000 + b'.')
    with pytest.raises(ValueError, match=r'mine\.pth .*pickle has more than 20000 operations'):
        read_checkpoint(file)


@pytest.mark.parametrize('options', [{}, PICKLE], ids=['zip', 'pickle'])
def test_files_of_every_pytorch_load(file, options):
    save(file, {'state_dict': {'w': torch.ones(3)}}, **options)
    assert find_damage(file) is None
    assert read_checkpoint(file)['state_dict']['w'].equal(torch.ones(3))


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (b'<!DOCTYPE html>\n<html>', "a text, perhaps a web page .* begins '<!DOCTYPE html>'"),
        ('naïve weights'.encode(), "begins 'naïve weights'"),
        (b'\0' * 500, 'null bytes'),
        (b'', r'\(0 bytes\) .*it is empty'),
        (b'\x80\x02 a pickle that is none', 'is no checkpoint'),
        (b'\x93NUMPY\x01\x00', 'is no checkpoint'),
        (b'PK\x03\x04 and no more', 'cut short or damaged'),
    ],
    ids=['web page', 'text', 'nulls', 'empty', 'pickle', 'array', 'cut short'],
)
def test_other_files_are_called_what_they_are(file, content, message):
    file.write_bytes(content)
    with pytest.raises(ValueError, match=rf'mine\.pth .*{message}'):
        read_checkpoint(file)


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ([torch.ones(2)], 'holds a list, expected a dict'),
        ({'meta': [1, 2], 'state_dict': {}}, "has a list as 'meta', expected a dict"),
        ({'state_dict': [torch.ones(2)]}, "has a list as 'state_dict'"),
        ({'state_dict': {3: torch.ones(2)}}, 'has 3 where the name of a weight'),
        ({'args': argparse.Namespace()}, 'holds a argparse.Namespace beside its tensors'),
    ],
    ids=['list', 'meta', 'weights', 'names', 'objects'],
)
@pytest.mark.parametrize('options', [{}, PICKLE], ids=['zip', 'pickle'])
def test_another_layout_is_named(file, content, message, options):
    save(file, content, **options)
    with pytest.raises(ValueError, match=rf'mine\.pth.* {message}'):
        read_checkpoint(file)


def test_paths_without_a_file_are_called_what_they_are(tmp_path):
    for path, message in [
        (tmp_path / 'none.pth', 'none.pth does not exist$'),
        (tmp_path, f'{tmp_path} is a folder: give a file in it'),
        ('https://a.org/b.pth', 'b.pth does not exist: download it'),
        (
            tmp_path / 'encoder_shapes/epoch_6.pth',
            'exist: `xmodal train configs/acerpe/encoder_shapes.py` makes it$',
        ),
    ]:
        with pytest.raises(FileNotFoundError, match=message):
            require_checkpoint(path)


def test_an_image_encoder_whose_file_is_not_there_says_what_makes_it():
    encoder = MODELS.build(
        dict(
            type='ViTImageEncoder',
            arch='vit_tiny_patch16_224',
            image_size=32,
            pretrained='none/encoder_shapes/epoch_6.pth',
        )
    )
    with pytest.raises(FileNotFoundError, match='pretrained=.*does not exist.*encoder_shapes.py'):
        encoder.init_weights()


def test_an_image_encoder_names_the_file_that_it_cannot_start_from(file):
    file.write_bytes(b'<html>')
    encoder = MODELS.build(
        dict(
            type='ViTImageEncoder',
            arch='vit_tiny_patch16_224',
            image_size=32,
            depth=1,
            pretrained=str(file),
        )
    )
    with pytest.raises(ValueError, match=r"mine\.pth .*a web page .* begins '<html>'"):
        encoder.init_weights()
