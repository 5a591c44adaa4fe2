"""Words and their pieces have readable names, whatever a tokenizer keeps in its vocabulary."""

import pytest
from tokenizers.pre_tokenizers import ByteLevel
from transformers import BertTokenizer, CLIPTokenizer, RobertaTokenizer

from xmodal.models.base.tokenizer import piece_names, words_with_places

BERT = '[PAD] [UNK] [CLS] [SEP] [MASK] a red ring ##s ##let -'.split()
ROBERTA = ['<s>', '<pad>', '</s>', '<unk>', '<mask>', *sorted(ByteLevel.alphabet())]
MERGES = [('Ġ', 'r'), ('i', 'n'), ('Ġr', 'in'), ('Ġrin', 'g'), ('l', 'e'), ('le', 't')]
CLIP = '<|startoftext|> <|endoftext|> a</w> r i n g s</w> l e t ri ng ring le'.split()


@pytest.fixture(params=['bert', 'roberta', 'clip'])
def tokenizer(request):
    if request.param == 'bert':
        return BertTokenizer(vocab={word: index for index, word in enumerate(BERT)})
    if request.param == 'roberta':
        words = [*ROBERTA, *map(''.join, MERGES)]
        return RobertaTokenizer(vocab={w: i for i, w in enumerate(words)}, merges=MERGES)
    merges = [('r', 'i'), ('n', 'g'), ('ri', 'ng'), ('l', 'e')]
    return CLIPTokenizer(vocab={word: index for index, word in enumerate(CLIP)}, merges=merges)


def test_each_word_has_the_places_of_its_pieces(tokenizer):
    text = 'a ringlets a rings'
    words = words_with_places(tokenizer, text)
    assert [word for word, _ in words] == text.split()
    count = len(tokenizer(text)['input_ids'])
    # All places but the first and the last, which are those of special tokens.
    assert [place for _, places in words for place in places] == [*range(1, count - 1)]
    assert len(words[1][1]) > 1 and len(words[0][1]) == 1
    cut = words_with_places(tokenizer, text, 4)
    assert cut[0] == words[0] and [place for _, places in cut for place in places] == [1, 2]


def test_names_of_pieces_are_parts_of_the_text(tokenizer):
    names = piece_names(tokenizer, tokenizer('a rings')['input_ids'])
    assert ''.join(name.removeprefix('##') for name in names[1:-1]) == 'arings'
    assert names[0] in ('[CLS]', '<s>', '<|startoftext|>')


def test_words_that_bert_does_not_know_have_no_places():
    tokenizer = BertTokenizer(vocab={word: index for index, word in enumerate(BERT)})
    words = words_with_places(tokenizer, 'a zebra rings')
    assert words == [('a', [1]), ('rings', [3, 4])]
    assert piece_names(tokenizer, [*range(len(BERT))]) == BERT
