"""A recurrent text encoder over a vocabulary of words."""

from pathlib import Path

import torch
from mmengine.logging import print_log
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from xmodal import functional as F
from xmodal.models.backbones.encoder import Encoder
from xmodal.registry import MODELS
from xmodal.structures import Tokens
from xmodal.vocabulary import Vocabulary

_MAX_LINE = 1 << 20  # characters: a file without line ends would be one line


@MODELS.register_module()
class GruTextEncoder(Encoder):
    """A bidirectional GRU over word vectors, both directions averaged, L2-normalised (SGRAF).

    Args:
        vocab_size: V, number of words.
        word_dims: width of a word vector.
        embed_dims: D, width of the tokens and of each direction.
        dropout: probability on the word vectors.
        word_vectors: a GloVe text file, one word and ``word_dims`` numbers a line. It is read when
            training starts (``init_weights``); words it lacks keep their random vectors.
        vocabulary: file of the vocabulary that numbers the words; needed with ``word_vectors``.

    Shape:
        input_ids: (B, L) int64; attention_mask: (B, L) bool, True from the first word to the last,
        of which there is at least one. Returns tokens (B, L, D) without [CLS].

    Raises:
        ValueError: for word vectors without a vocabulary.
    """

    has_cls = False

    def __init__(
        self,
        vocab_size: int,
        word_dims: int = 300,
        embed_dims: int = 1024,
        dropout: float = 0.4,
        word_vectors: str | None = None,
        vocabulary: str | None = None,
    ) -> None:
        super().__init__()
        if word_vectors is not None and vocabulary is None:
            raise ValueError(
                f"text_encoder.word_vectors='{word_vectors}' needs text_encoder.vocabulary, the "
                'file that numbers the words'
            )
        self.embed_dims = embed_dims
        self.word_vectors, self.vocabulary = word_vectors, vocabulary
        self.embedding = nn.Embedding(vocab_size, word_dims)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.dropout = nn.Dropout(dropout)
        self.gru = nn.GRU(word_dims, embed_dims, batch_first=True, bidirectional=True)

    @torch.no_grad()
    def init_weights(self) -> None:
        """Reads the word vectors, if any are asked for.

        Raises:
            FileNotFoundError: when there is no such file.
            ValueError: when the vocabulary has another number of words, when a line of the file is
                malformed, or when it has none of the words.
        """
        if self.word_vectors is None:
            return
        ids = Vocabulary.read(self.vocabulary).word_ids
        vocab_size, word_dims = self.embedding.weight.shape
        if len(ids) != vocab_size:
            raise ValueError(
                f'{self.vocabulary} has {len(ids)} words, but text_encoder.vocab_size={vocab_size}'
            )
        vectors = read_word_vectors(self.word_vectors, word_dims, ids)
        for word, vector in vectors.items():
            self.embedding.weight[ids[word]] = vector
        print_log(
            f'{self.word_vectors}: vectors of {len(vectors)} of {vocab_size} words', 'current'
        )

    @property
    def vocab_size(self) -> int:
        """V."""
        return self.embedding.num_embeddings

    def embed(self, input_ids: Tensor, attention_mask: Tensor) -> Tokens:
        """Words to word vectors, (B, L, word_dims)."""
        return Tokens(self.dropout(self.embedding(input_ids)), attention_mask)

    def encode(self, tokens: Tokens) -> Tokens:
        """The GRU, the mean of both directions, and the norm."""
        lengths = tokens.attention_mask.sum(1).cpu()
        packed = pack_padded_sequence(
            tokens.embeddings, lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(
            self.gru(packed)[0], batch_first=True, total_length=tokens.embeddings.shape[1]
        )
        forward, backward = states.chunk(2, -1)
        return tokens.with_embeddings(F.l2_normalize((forward + backward) / 2))


def read_word_vectors(file: str, dims: int, words: dict[str, int]) -> dict[str, Tensor]:
    """Reads the vectors of some words from a GloVe text file, line by line.

    Raises:
        FileNotFoundError: when there is no such file.
        ValueError: names the line that is malformed, or the file when it has none of the words.
    """
    if not Path(file).is_file():
        raise FileNotFoundError(
            f"text_encoder.word_vectors='{file}' is no file: get GloVe (nlp.stanford.edu/projects/"
            'glove) and name its text file, or set word_vectors=None for random word vectors'
        )
    vectors, line_number = {}, 0
    # A word in another encoding is none of ours.
    with open(file, encoding='utf-8', errors='replace') as lines:
        while line := lines.readline(_MAX_LINE):
            line_number += 1
            word, *values = line.rstrip().rsplit(' ', dims)
            if word not in words:
                continue
            try:
                vector = torch.tensor([float(value) for value in values])
            except ValueError:
                vector = torch.empty(0)
            if len(vector) != dims or not vector.isfinite().all():
                raise ValueError(
                    f'{file}, line {line_number}: expected a word and {dims} numbers '
                    f'(text_encoder.word_dims), found {line[:60].rstrip()!r}…'
                )
            vectors[word] = vector
    if not vectors:
        raise ValueError(
            f'{file} has a vector of {dims} numbers (text_encoder.word_dims) for none of the '
            f'{len(words)} words of the vocabulary'
        )
    return vectors
