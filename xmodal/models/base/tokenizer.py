"""Tokenizers of transformers."""

from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers.processors import TemplateProcessing
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoTokenizer, BertTokenizer, PreTrainedTokenizerBase, RobertaTokenizer

from xmodal.errors import ConfigError
from xmodal.fields import shorten
from xmodal.files import read_text
from xmodal.weights import find_weights

_SPECIAL = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
FAMILIES = {'bert': BertTokenizer, 'roberta': RobertaTokenizer, 'auto': AutoTokenizer}


def build_tokenizer(
    pretrained: str, add_sep: bool = True, family: str = 'bert', add_cls: bool = True
) -> PreTrainedTokenizerBase:
    """Builds a tokenizer.

    Args:
        pretrained: a vocabulary file of BERT's (``vocab.txt``), a directory, a name on the hub, or
            a source (:mod:`xmodal.weights`).
        add_sep: end a text with [SEP]. ALBEF's released weights were trained without it.
        family: 'bert', or 'roberta' for GPT-2's byte pairs, which data2vec 2.0 reads, or 'auto' for
            whatever the directory has, for :class:`TransformersTextEncoder`.
        add_cls: with 'auto', a tokenizer that puts no token at the start of a text, as SigLIP's,
            puts its last one there, too.

    Raises:
        ConfigError: when a library is missing, a directory has no files of a tokenizer, or no first
            token can be put in.
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
        except ImportError as error:
            raise ConfigError(
                f"data_preprocessor.tokenizer.pretrained='{pretrained}': {error}"
            ) from error
        except (OSError, ValueError) as error:  # ValueError: no architecture is named
            raise FileNotFoundError(
                f"data_preprocessor.tokenizer.pretrained='{pretrained}' is neither a vocabulary "
                f'file, nor a directory with one, nor reachable on the hub: {error}\nFor the '
                "embedded world take that of its model, 'zoo:acerpe-shapes', or run "
                '`xmodal make-shapes --out data/shapes`; for real text put '
                'bert-base-uncased (its vocab.txt is enough) where the config says.'
            ) from error
        if len(tokenizer) <= len(tokenizer.all_special_tokens):
            raise ConfigError(
                f"data_preprocessor.tokenizer.pretrained='{pretrained}' has no tokenizer, of which "
                'transformers makes one that knows special words alone: save the files of the '
                "model's tokenizer there, too"
            )
    if not add_sep:
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
            single='[CLS] $A', special_tokens=[('[CLS]', tokenizer.cls_token_id)]
        )
    if family == 'auto' and add_cls:
        _add_first_token(tokenizer, pretrained)
    return tokenizer


def _add_first_token(tokenizer: PreTrainedTokenizerBase, pretrained: str) -> None:
    """Puts the token of the end at the start, where there is none for the summary of a text.

    Raises:
        ConfigError: when the tokenizer is one in Python, which cannot be changed.
    """
    if not tokenizer.is_fast:
        raise ConfigError(
            f"data_preprocessor.tokenizer.pretrained='{pretrained}' is a "
            f'{type(tokenizer).__name__}, written in Python: expected a fast tokenizer, which has '
            'a file tokenizer.json'
        )
    if tokenizer('a').word_ids()[0] is not None:
        end = tokenizer.eos_token
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
            single=f'{end} $A {end}', special_tokens=[(end, tokenizer.eos_token_id)]
        )


def _read_vocabulary(file: Path) -> dict[str, int]:
    """Ids of the words of a ``vocab.txt``: the numbers of their lines, from 0.

    Raises:
        ValueError: when a word occurs twice or a special one is missing: later ids would shift.
    """
    # str.splitlines would also split at what a word may contain, such as U+0085.
    words = read_text(file).replace('\r\n', '\n').removesuffix('\n').split('\n')
    ids = {word: index for index, word in enumerate(words)}
    if len(ids) < len(words):
        repeated = next(word for index, word in enumerate(words) if ids[word] != index)
        raise ValueError(f'{file}, line {ids[repeated] + 1}: {shorten(repeated)} occurs twice')
    if missing := [word for word in _SPECIAL if word not in ids]:
        raise ValueError(f'{file} has no {", ".join(missing)}: expected a vocabulary of BERT')
    return ids


def pad_ids(ids: Sequence[Sequence[int]], padding: int) -> tuple[Tensor, Tensor]:
    """Ids of texts, padded at their ends, int64, and True for what is no padding, both (T, N)."""
    rows = [torch.tensor(x, dtype=torch.int64) for x in ids]
    padded = pad_sequence(rows, batch_first=True, padding_value=padding)
    lengths = torch.tensor([len(x) for x in ids])
    return padded, torch.arange(padded.shape[1]) < lengths[:, None]


def piece_names(tokenizer: PreTrainedTokenizerBase, ids: list[int]) -> list[str]:
    """The word pieces of ids as people read them: 'ring', where byte pairs keep 'Ġring'."""
    pieces = tokenizer.convert_ids_to_tokens(ids)
    # A space alone has no other name.
    return [tokenizer.decode([i]).strip() or piece for i, piece in zip(ids, pieces, strict=True)]


def words_with_places(
    tokenizer: PreTrainedTokenizerBase, text: str, max_length: int | None = None
) -> list[tuple[str, list[int]]]:
    """The words of a text as it has them, each with the places of its pieces among its tokens.

    Special tokens, of which [UNK] is one, are no words.

    Args:
        tokenizer: of the text.
        text: a text.
        max_length: of its tokens; None cuts none.
    """
    cut = max_length is not None
    encoded = tokenizer(text, truncation=cut, max_length=max_length, return_offsets_mapping=True)
    words: dict[int, list[int]] = {}
    for place, (word, piece) in enumerate(
        zip(encoded.word_ids(), encoded['input_ids'], strict=True)
    ):
        if word is not None and piece not in tokenizer.all_special_ids:
            words.setdefault(word, []).append(place)
    spans = encoded['offset_mapping']
    return [(text[spans[p[0]][0] : spans[p[-1]][1]].strip(), p) for p in words.values()]


def check_vocabulary(preprocessor: nn.Module, text_encoder: nn.Module) -> None:
    """Refuses a tokenizer that does not belong to the text encoder, or texts too long for it.

    A vocabulary that a config gives in numbers may be smaller than the encoder's. If the encoder's
    configuration was read from files, the sizes must be those of one another, and the ids of [PAD]
    the same, unless the tokenizer is of the same folder: the configuration of multilingual MiniLM
    and E5 has BERT's, and their tokenizer that of XLM-R.

    Raises:
        ValueError: names the sizes or the ids that differ.
    """
    words, known = preprocessor.vocab_size, getattr(text_encoder, 'vocab_size', None)
    if known is None:  # it counts the words of the preprocessor
        return
    longest = preprocessor.max_length
    positions = _num_positions(text_encoder)
    if None not in (longest, positions) and longest > positions:
        raise ValueError(
            f'data_preprocessor.max_length={longest}, but the text encoder has {positions} '
            'positions (by its max_length, or text_encoder.config.max_position_embeddings): lower '
            'the one or raise the other'
        )
    if words > known:
        raise ValueError(
            f'the tokenizer has {words} words but text_encoder.config.vocab_size is {known}: raise '
            'it, or name the vocabulary that belongs to the text encoder'
        )
    tokenizer = getattr(preprocessor, 'tokenizer', None)
    if tokenizer is None or not getattr(text_encoder, 'is_named', False):
        return
    advice = 'name the tokenizer that belongs to the text encoder (data_preprocessor.tokenizer)'
    if not fills_table(words, known):
        raise ValueError(f'the tokenizer has {words} words and the text encoder {known}: {advice}')
    if str(tokenizer.name_or_path) == text_encoder.config.name_or_path:
        return
    ids = tokenizer.pad_token_id, text_encoder.config.pad_token_id
    # CLIP's configuration names a [PAD] that its tokenizer does not have.
    if None not in ids and ids[0] != ids[1] and text_encoder.config.model_type != 'clip_text_model':
        raise ValueError(
            f"the tokenizer's [PAD] is word {ids[0]} and the text encoder's word {ids[1]}: {advice}"
        )


def fills_table(words: int, rows: int) -> bool:
    """Whether a vocabulary may be that of a table of word vectors.

    Published tables have rows to spare, up to a multiple of 128 or 1 % of them.
    """
    return 0 <= rows - words < max(128, rows // 100)


def _num_positions(text_encoder: nn.Module) -> int | None:
    """The tokens of a text at most, by the encoder or a model in it; None for any number."""
    if (own := getattr(text_encoder, 'max_length', None)) is not None:
        return own
    configs = (getattr(module, 'config', None) for module in text_encoder.modules())
    counts = (getattr(config, 'max_position_embeddings', None) for config in configs)
    positions = next((count for count in counts if count is not None), None)
    if positions is None:
        return None
    for name, module in text_encoder.named_modules():
        padding = getattr(module, 'padding_idx', None)
        if name.endswith('position_embeddings') and padding is not None:
            return positions - padding - 1  # RoBERTa's and MPNet's texts begin after that of [PAD]
    return positions
