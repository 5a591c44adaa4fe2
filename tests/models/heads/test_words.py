"""Words of a config are found in texts, by tokenizers of either kind."""

from types import SimpleNamespace

import pytest
from tokenizers import ByteLevelBPETokenizer
from transformers import BertTokenizer, PreTrainedTokenizerFast

from xmodal.models.heads.words import word_ids

TEXT = 'a star left of a ring'
SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']


def byte_pairs():
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator([TEXT] * 9, vocab_size=400, special_tokens=SPECIAL)
    return PreTrainedTokenizerFast(tokenizer_object=trained._tokenizer, unk_token='[UNK]')


def word_pieces():
    words = [*SPECIAL, *dict.fromkeys(TEXT.split())]
    return BertTokenizer(vocab={word: number for number, word in enumerate(words)})


@pytest.mark.parametrize('make', [byte_pairs, word_pieces])
def test_the_id_of_a_word_is_that_in_a_text(make):
    tokenizer = make()
    model = SimpleNamespace(data_preprocessor=SimpleNamespace(tokenizer=tokenizer))
    ids = tokenizer(TEXT, add_special_tokens=False)['input_ids']
    assert word_ids(model, ['left', 'ring'], 'focus') == [ids[2], ids[5]]
    for word in ('[UNK]', 'zebra'):
        with pytest.raises(ValueError, match=f"focus has '\\[?{word.strip('[]')}"):
            word_ids(model, [word], 'focus')
