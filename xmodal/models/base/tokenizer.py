"""Tokenizers of transformers."""

from pathlib import Path

from tokenizers.processors import TemplateProcessing
from torch import nn
from transformers import BertTokenizer, PreTrainedTokenizerBase, RobertaTokenizer

FAMILIES = {'bert': BertTokenizer, 'roberta': RobertaTokenizer}


def build_tokenizer(
    pretrained: str, add_sep: bool = True, family: str = 'bert'
) -> PreTrainedTokenizerBase:
    """Builds a tokenizer.

    Args:
        pretrained: a vocabulary file of BERT's (``vocab.txt``), a directory, or a name on the hub.
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
    path = Path(pretrained)
    if path.is_file():
        vocabulary = {word: i for i, word in enumerate(path.read_text('utf-8-sig').splitlines())}
        tokenizer = BertTokenizer(vocab=vocabulary)
    else:
        try:
            tokenizer = FAMILIES[family].from_pretrained(pretrained)
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
