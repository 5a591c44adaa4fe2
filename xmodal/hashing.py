"""Numbers that stand for texts, the same in every process and on every machine."""

from hashlib import blake2b


def hash_text(text: str) -> int:
    """A 63-bit number of a text, which fits into int64."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), 'big') >> 1
