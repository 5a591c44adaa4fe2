"""Words and their numbers, for models that read words rather than word pieces."""

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from nltk.tokenize import NLTKWordTokenizer

from xmodal.files import explain_errors, read_json, write_json

SPECIAL_WORDS = ('<pad>', '<start>', '<end>', '<unk>')
PAD, START, END, UNKNOWN = range(4)
_LAYOUT = (
    'a vocabulary, {"word2idx": {"<pad>": 0, "<start>": 1, "<end>": 2, "<unk>": 3, "a": 4, …}, …}'
)
_TREEBANK = NLTKWordTokenizer()
# The tokenizer parts a full stop from its word only at the end of a text: one after two letters and
# before a space ends a sentence too, one in "u.s. flag" does not.
_FULL_STOP = re.compile(r'(?<=[^\W\d_]{2})\.(?=\s)')


def split_words(caption: str) -> list[str]:
    """Words and punctuation of a caption, in lower case, by the rules of the Penn Treebank.

    They are those of ``nltk.word_tokenize``, which the published vocabularies were made with, but
    for rare abbreviations: that function finds sentences with a model that has to be downloaded.
    """
    return _TREEBANK.tokenize(_FULL_STOP.sub(' .', caption.lower()))


class Vocabulary:
    """Numbers of words: ``<pad>`` 0, ``<start>`` 1, ``<end>`` 2, ``<unk>`` 3, then the others.

    Args:
        words: all of them, the special ones first; a word's number is its place.

    Raises:
        ValueError: when these are not the special words, or a word comes twice.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        if self.words[:4] != SPECIAL_WORDS:
            raise ValueError(
                f'words 0 to 3 are {list(self.words[:4])}, expected {list(SPECIAL_WORDS)}'
            )
        self.numbers = {word: number for number, word in enumerate(self.words)}
        if len(self.numbers) < len(self.words):
            twice = next(w for n, w in enumerate(self.words) if self.numbers[w] != n)
            raise ValueError(f"the word '{twice}' is there twice")

    @classmethod
    def read(cls, file: str | Path) -> 'Vocabulary':
        """Reads ``{"word2idx": {word: number}, …}``, the layout of VSE++, SCAN and SGRAF.

        Raises:
            FileNotFoundError: says how to get a vocabulary.
            ValueError: when the file is of another layout, or numbers are missing.
        """
        file = Path(file)
        if not file.is_file():
            raise FileNotFoundError(
                f'the vocabulary {file} is not there (tokenizer.vocabulary). A published '
                'checkpoint needs the one it came with; for training from scratch run `python '
                'tools/dataset_converters/build_vocab.py`; for the embedded world `python '
                'tools/make_shapes.py --out data/shapes`.'
            )
        with explain_errors(file, _LAYOUT):
            numbers = read_json(file)['word2idx']
            words = sorted(numbers, key=numbers.get)
            if [numbers[word] for word in words] != list(range(len(words))):
                raise ValueError(f'the numbers of its {len(words)} words are not 0, 1, 2, …')
            return cls(words)

    def write(self, file: Path) -> None:
        """Writes a file in the same layout."""
        content = {
            'word2idx': self.numbers,
            'idx2word': dict(enumerate(self.words)),
            'idx': len(self.words),
        }
        write_json(file, content)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def fingerprint(self) -> int:
        """A 63-bit number, equal for vocabularies with the same words at the same places."""
        digest = blake2b('\n'.join(self.words).encode(), digest_size=8).digest()
        return int.from_bytes(digest, 'big') >> 1

    @lru_cache(maxsize=2**20)  # noqa: B019 - one vocabulary a process, and each epoch asks again
    def encode(self, caption: str) -> tuple[int, ...]:
        """Numbers of the words of a caption, between those of ``<start>`` and ``<end>``."""
        numbers = (self.numbers.get(word, UNKNOWN) for word in split_words(caption))
        return START, *numbers, END
