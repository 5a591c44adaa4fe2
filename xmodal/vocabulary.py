"""Words and their ids, for models that read words instead of word pieces."""

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from xmodal.fields import read_object
from xmodal.files import explain_errors, write_json
from xmodal.hashing import hash_text

SPECIAL_WORDS = ('<pad>', '<start>', '<end>', '<unk>')
PAD, START, END, UNKNOWN = range(4)
_LAYOUT = (
    'a vocabulary, {"word2idx": {"<pad>": 0, "<start>": 1, "<end>": 2, "<unk>": 3, "a": 4, …}, …}'
)
# The tokenizer separates a full stop from its word only at the end of a text. A full stop after two
# letters and before a space ends a sentence as well; the one in "u.s. flag" does not.
_FULL_STOP = re.compile(r'(?<=[^\W\d_]{2})\.(?=\s)')


def split_words(caption: str) -> list[str]:
    """Words and punctuation of a caption in lower case, by the rules of the Penn Treebank.

    The published vocabularies were made with ``nltk.word_tokenize``, which gives the same words
    except for rare abbreviations: it finds sentences with a model that has to be downloaded.
    """
    return _treebank().tokenize(_FULL_STOP.sub(' .', caption.lower()))


@cache
def _treebank() -> Any:
    # Here, because NLTK imports SciPy, which takes two seconds, and few models read words.
    from nltk import NLTKWordTokenizer

    return NLTKWordTokenizer()


class Vocabulary:
    """Ids of words: ``<pad>`` 0, ``<start>`` 1, ``<end>`` 2, ``<unk>`` 3, then all other words.

    Args:
        words: all words, the special ones first; the id of a word is its index.

    Raises:
        ValueError: when the first words are not the special ones, or a word occurs twice.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        if self.words[:4] != SPECIAL_WORDS:
            raise ValueError(
                f'words 0 to 3 are {list(self.words[:4])}, expected {list(SPECIAL_WORDS)}'
            )
        self.word_ids = {word: index for index, word in enumerate(self.words)}
        if len(self.word_ids) < len(self.words):
            repeated = next(w for i, w in enumerate(self.words) if self.word_ids[w] != i)
            raise ValueError(f"the word '{repeated}' occurs twice")

    @classmethod
    def read(cls, file: str | Path) -> 'Vocabulary':
        """Reads ``{"word2idx": {word: id}, …}``, the layout of VSE++, SCAN and SGRAF.

        Raises:
            FileNotFoundError: says how to get a vocabulary.
            ValueError: when the file has another layout, or ids are missing.
        """
        file = Path(file)
        if not file.is_file():
            raise FileNotFoundError(
                f'the vocabulary {file} does not exist (tokenizer.vocabulary). A published '
                'checkpoint needs the vocabulary that it came with. To train from scratch, run '
                '`xmodal build-vocab`; for the embedded world, run '
                '`xmodal make-shapes --out data/shapes`.'
            )
        with explain_errors(file, _LAYOUT):
            fields = read_object(file).object('word2idx')
            word_ids = {word: fields.integer(word) for word in fields}
            words = sorted(word_ids, key=word_ids.get)
            if [word_ids[word] for word in words] != list(range(len(words))):
                raise ValueError(f'the ids of its {len(words)} words are not 0, 1, 2, …')
            return cls(words)

    def write(self, file: Path) -> None:
        """Writes a file in the same layout."""
        content = {
            'word2idx': self.word_ids,
            'idx2word': dict(enumerate(self.words)),
            'idx': len(self.words),
        }
        write_json(file, content)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def fingerprint(self) -> int:
        """A 63-bit hash, equal for vocabularies with the same words in the same order."""
        return hash_text('\n'.join(self.words))

    @lru_cache(maxsize=2**20)  # noqa: B019 - one vocabulary per process, and each epoch asks again
    def encode(self, caption: str) -> tuple[int, ...]:
        """Ids of the words of a caption, between those of ``<start>`` and ``<end>``."""
        word_ids = (self.word_ids.get(word, UNKNOWN) for word in split_words(caption))
        return START, *word_ids, END

    def unknown_words(self, caption: str) -> list[str]:
        """The words of a caption that have no id of their own, in their order."""
        return [word for word in split_words(caption) if word not in self.word_ids]
