"""What stands for texts and files, the same in every process and on every machine."""

from hashlib import blake2b, sha256
from pathlib import Path

_CHUNK = 1 << 20


def hash_text(text: str) -> int:
    """A 63-bit number of a text, which fits into int64."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), 'big') >> 1


def file_hash(file: Path) -> str:
    """SHA-256 of a file in hexadecimal digits."""
    digest = sha256()
    with open(file, 'rb') as content:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
