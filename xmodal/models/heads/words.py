"""Words that a config names, in the vocabulary of a model."""

from collections.abc import Iterable

from torch import nn


def word_ids(model: nn.Module, words: Iterable[str], key: str) -> list[int]:
    """The ids of words.

    Args:
        model: its preprocessor has the tokenizer.
        words: each is one piece of the vocabulary.
        key: the config key that names them, for errors.

    Raises:
        ValueError: when a word is unknown, special, or several pieces.
    """
    tokenizer, ids = model.data_preprocessor.tokenizer, []
    for word in words:
        # Inside a text: byte pairs have another piece for a word after a space.
        pieces = tokenizer.tokenize(f'a {word}')[len(tokenizer.tokenize('a')) :]
        if len(pieces) != 1 or pieces[0] in tokenizer.all_special_tokens:
            raise ValueError(
                f"{key} has '{word}', which the tokenizer reads as {pieces}: name words that are "
                'one piece of its vocabulary'
            )
        ids.append(tokenizer.convert_tokens_to_ids(pieces[0]))
    return ids
