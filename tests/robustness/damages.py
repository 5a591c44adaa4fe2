"""Ways to damage a file."""

import os
import random
from itertools import count

DEPTH, TIMES = 100_000, count(1)


def write(file, content):
    """Writes a file with a time of its own, by which an index knows that it is another one."""
    file.unlink(missing_ok=True)  # some disks take ten times as long to write over it
    file.write_bytes(content)
    os.utime(file, ns=(next(TIMES), next(TIMES)))


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
