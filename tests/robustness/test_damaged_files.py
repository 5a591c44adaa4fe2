"""Every reader's file cut off, in other encodings, with garbage, nested deeply and continued."""

import json
import random

import pytest
from readers import READERS
from test_fields import folders, ids, write  # noqa: F401 - the fixture
from trials import require_right
from wrong_values import to_json, to_lines, to_pickle

DEPTH = 100_000


def cut(content, parts=16):
    """The content cut off at many places."""
    for place in range(parts):
        yield f'cut off after {place}/{parts}', content[: len(content) * place // parts]
    yield 'cut off before the last byte', content.rstrip()[:-1]


def garbage(content, count=16):
    """The content with one byte that no UTF-8 text has, and noise of the same length."""
    rng = random.Random(0)
    for place in rng.sample(range(len(content)), min(count, len(content))):
        yield f'byte {place} is 0xff', content[:place] + b'\xff' + content[place + 1 :]
    yield 'noise', rng.randbytes(len(content))
    yield 'null bytes', bytes(len(content))


def other_files(content):
    """What else may be found under the name of a file."""
    yield 'empty', b''
    yield 'a Git LFS pointer', b'version https://git-lfs.github.com/spec/v1\noid sha256:0\n'
    yield 'HTML', b'<!doctype html><title>404</title>'
    yield 'a PNG', b'\x89PNG\r\n\x1a\n\0\0\0\rIHDR'
    yield 'gzip', b'\x1f\x8b\x08\0\0\0\0\0'


def texts(content):
    """A text in other encodings, nested deeply, and continued."""
    text = content.decode()
    yield 'UTF-16', text.encode('utf-16')
    yield 'UTF-16 without a mark', text.encode('utf-16-le')
    yield 'UTF-32', text.encode('utf-32')
    yield 'Latin-1', b'"caf\xe9"' + content
    yield 'nested lists', b'[' * DEPTH
    yield 'nested objects', b'{"a":' * DEPTH
    yield 'nested lists in an item', b'[' + b'[' * DEPTH + b']' * DEPTH + b']'
    yield 'many digits', b'[' + b'9' * 5000 + b']'
    for name, more in (('text', b'x'), ('a list', b'[]'), ('a bracket', b']'), ('half', b'\xe2')):
        yield f'continued by {name}', content + more
    for mark in (b',', b':', b'{', b'"'):
        yield f'without {mark.decode()}', content.replace(mark, b'', 1)
        yield f'doubled {mark.decode()}', content.replace(mark, mark * 2, 1)


@pytest.mark.parametrize('reader', READERS, ids=ids)
def test_a_damaged_file_is_named(folders, reader, trials):  # noqa: F811
    folder = folders(reader)
    file, right = folder / reader.file, reader.dump(reader.content)
    damages = [cut, garbage, other_files, *([texts] if reader.dump is not to_pickle else [])]
    done = []
    for damage in damages:
        for name, content in damage(right):
            if is_as_right(reader, content):
                continue
            write(file, content)
            given = f'{reader.file}: {name}'
            # One byte of a pickle is another number or letter, which may be right.
            done.append(
                trials.run(
                    reader.name.split(',')[0],
                    given,
                    lambda: reader.read(folder, reader.modes[-1]),
                    [file],
                    is_right=reader.dump is to_pickle and name.startswith('byte'),
                )
            )
    require_right(done)


def is_as_right(reader, content):
    """Whether a damage leaves what is right: the same file, or fewer whole lines."""
    if reader.dump is to_lines:
        try:
            lines = content.decode().splitlines()
            return bool(lines) and all(json.loads(line) in reader.content for line in lines)
        except (ValueError, RecursionError):
            return False
    return content.rstrip() == reader.dump(reader.content).rstrip()


@pytest.mark.parametrize('reader', [r for r in READERS if r.dump is not to_pickle], ids=ids)
def test_marks_and_spaces_around_json_are_read(folders, reader):  # noqa: F811
    folder = folders(reader)
    content = reader.dump(reader.content)
    expected = reader.read(folder, reader.modes[-1])
    changed = [b'\xef\xbb\xbf' + content, content + b' \n\r\n\t']
    if reader.dump is to_json:
        changed.append(json.dumps(reader.content, indent=3).encode().replace(b'\n', b'\r\n'))
    for new in changed:
        write(folder / reader.file, new)
        found = reader.read(folder, reader.modes[-1])
        assert str(found) == str(expected) or reader.name in ('RegionStore', 'Vocabulary')
