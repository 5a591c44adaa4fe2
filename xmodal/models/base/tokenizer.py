"""Tokenizers of transformers."""

from pathlib import Path

from tokenizers.processors import TemplateProcessing
from torch import nn
from transformers import BertTokenizer, PreTrainedTokenizerBase, RobertaTokenizer

from xmodal.fields import shorten
from xmodal.files import read_text
from xmodal.weights import find_weights

_SPECIAL = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
FAMILIES = {'bert': BertTokenizer, 'roberta': RobertaTokenizer}


def build_tokenizer(
    pretrained: str, add_sep: bool = True, family: str = 'bert'
) -> PreTrainedTokenizerBase:
    """Builds a tokenizer.

    Args:
        pretrained: a vocabulary file of BERT's (``vocab.txt``), a directory, a name on the hub, or
            a source (:mod:`xmodal.weights`).
        add_sep: end a text with [SEP]. ALBEF's released weights were trained without it.
        family: 'bert', or 'roberta' for GPT-2's byte pairs, which data2vec 2.0 reads.

    Raises:
        FileNotFoundError: when there is no such file and no such model.
        ValueError: for another family.
    """
    if family not in FAMILIES:
        raise ValueError(
            f"data_preprocessor.tokenizer.family='{family}', expected one of {sorted(FAMILIES)}"
        )
    path = Path(find_weights(pretrained, 'data_preprocessor.tokenizer.pretrained'))
    if path.is_file():
        tokenizer = BertTokenizer(vocab=_read_vocabulary(path))
    else:
        try:
            tokenizer = FAMILIES[family].from_pretrained(path if path.is_dir() else pretrained)
        except OSError as error:
            raise FileNotFoundError(
                f"data_preprocessor.tokenizer.pretrained='{pretrained}' is neither a vocabulary "
                f'file, nor a directory with one, nor reachable on the hub: {error}\nFor the '
                'embedded world run `python tools/make_shapes.py --out data/shapes`; for real text '
                'put bert-base-uncased (its vocab.txt is enough) where the config says.'
            ) from error
    if not add_sep:
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
            single='[CLS] $A', special_tokens=[('[CLS]', tokenizer.cls_token_id)]
        )
    return tokenizer


def _read_vocabulary(file: Path) -> dict[str, int]:
    """Ids of the words of a ``vocab.txt``: the numbers of their lines, from 0.

    Raises:
        ValueError: when a word occurs twice or a special one is missing: later ids would shift.
    """
    words = read_text(file).splitlines()
    ids = {word: index for index, word in enumerate(words)}
    if len(ids) < len(words):
        repeated = next(word for index, word in enumerate(words) if ids[word] != index)
        raise ValueError(f'{file}, line {ids[repeated] + 1}: {shorten(repeated)} occurs twice')
    if missing := [word for word in _SPECIAL if word not in ids]:
        raise ValueError(f'{file} has no {", ".join(missing)}: expected a vocabulary of BERT')
    return ids


def check_vocabulary(words: int, text_encoder: nn.Module) -> None:
    """Compares the number of words of the tokenizer with the text encoder's.

    Raises:
        ValueError: when the tokenizer knows more words than the text encoder.
    """
    known = text_encoder.vocab_size
    if words > known:
        raise ValueError(
            f'the tokenizer has {words} words but text_encoder.config.vocab_size is {known}: '
            'raise it, or name the vocabulary that belongs to the text encoder'
        )
