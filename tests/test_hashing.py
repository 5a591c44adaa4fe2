"""Hashes of texts."""

from xmodal.hashing import hash_text


def test_the_hash_of_a_text_does_not_depend_on_the_process():
    assert hash_text('a red ring') == hash_text('a red ring') != hash_text('a ring')
    assert hash_text('a red ring') == 5363382719747995163  # not Python's seeded hash
    assert 0 <= hash_text('') < 2**63
