"""Tar shards that are damaged, and members of any size."""

import io
import random
import tarfile
from functools import partial
from itertools import chain

import cv2
import numpy as np
import pytest
from damages import cut, garbage, other_files, write
from trials import require_right

from xmodal.datasets import WebDatasetShards

IMAGE = cv2.imencode('.png', np.zeros((4, 4, 3), np.uint8))[1].tobytes()


def shard(pairs):
    """A tar file of pairs, each a dict from suffix to content."""
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode='w') as tar:
        for index, pair in enumerate(pairs):
            for suffix, content in pair.items():
                member = tarfile.TarInfo(f'{index:03}.{suffix}')
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return output.getvalue()


def read_pairs(folder, count=2):
    dataset = WebDatasetShards(
        '0.tar', 4, str(folder), [dict(type='LoadImage'), dict(type='PackImageText')]
    )
    stream = iter(dataset)
    return [next(stream)['data_samples'] for _ in range(count)]


def test_shards(tmp_path, trials):
    file = tmp_path / '0.tar'
    right = shard(
        [{'png': IMAGE, 'txt': b'a dog'}, {'png': IMAGE, 'json': b'{"caption": "a cat"}'}]
    )
    write(file, right)
    rng = random.Random(0)
    done = []
    flips = ((f'bit {bit}', _flipped(right, bit)) for bit in rng.sample(range(len(right) * 8), 150))
    for is_right, damaged in (
        (has_own_captions, chain(cut(right), other_files(right))),
        (is_read, chain(garbage(right), flips)),
    ):
        for name, content in damaged:
            write(file, content)
            call = partial(read_pairs, tmp_path, 3)
            done.append(trials.run('WebDatasetShards', f'0.tar: {name}', call, [file], is_right))
    require_right(done)


def has_own_captions(samples):
    """No caption is one that the shard did not have: a part of one, or another file."""
    return all(sample.text in ('a dog', 'a cat') for sample in samples)


def is_read(samples):
    """A changed letter of a caption or a name cannot be seen."""
    return len(samples) == 3


def _flipped(content, bit):
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize(
    'text', [b'caf\xe9', b'\xff\xfea\0', b'{', b'[1]', b'{"caption": 5}', b'null', b'[' * 99999]
)
@pytest.mark.parametrize('suffix', ['txt', 'json'])
def test_a_wrong_caption_of_a_shard_is_listed(tmp_path, trials, suffix, text):
    if suffix == 'txt' and not text.startswith((b'caf', b'\xff')):
        return  # any text is a caption
    good = {'png': IMAGE, 'txt': b'a dog'}
    write(tmp_path / '0.tar', shard([{'png': IMAGE, suffix: text}, good]))

    def is_listed(samples):
        notes = [note for sample in samples for note in sample.skipped]
        return {s.text for s in samples} == {'a dog'} and any(f'000.{suffix}' in n for n in notes)

    call = partial(read_pairs, tmp_path)
    require_right([trials.run('WebDatasetShards', text[:40], call, [], is_listed)])


def test_a_huge_member_is_listed_and_not_read(tmp_path, trials):
    file = tmp_path / '0.tar'
    for suffix, size in (('jpg', 300 << 20), ('txt', 2 << 20), ('npy', 300 << 20)):
        with open(file, 'wb') as output:
            member = tarfile.TarInfo(f'000.{suffix}')
            member.size = size
            output.write(member.tobuf())
            output.seek(size, 1)  # sparse: takes no place
            output.write(shard([{'png': IMAGE, 'txt': b'a cat'}]))

        def is_listed(samples, suffix=suffix):
            notes = [note for sample in samples for note in sample.skipped]
            return samples[0].text == 'a cat' and (
                suffix == 'npy' or any(f'000.{suffix}' in note for note in notes)
            )

        call = partial(read_pairs, tmp_path, 1)
        require_right([trials.run('WebDatasetShards', suffix, call, [], is_listed, seconds=60)])
