"""What the backbone of a fusion model takes of the encoders of a plug-in."""

import pytest
import torch
from torch import nn

from xmodal.errors import ConfigError
from xmodal.models.backbones import BertTextEncoder, Encoder
from xmodal.models.base import encode
from xmodal.models.necks import TokenTypeEmbedding
from xmodal.registry import MODELS
from xmodal.structures import Tokens

PATCHES, PIXELS = torch.randn(2, 12, 8), torch.randn(2, 3, 6, 8)


class Given(Encoder):
    """Makes the tokens that it is told."""

    has_cls = False
    embed_dims = 8

    def __init__(self, tokens=None):
        super().__init__()
        self.tokens = tokens

    def embed(self, *_):
        return self.tokens

    def encode(self, tokens):
        return tokens


@pytest.mark.parametrize(
    ('tokens', 'message'),
    [
        (PATCHES, r'Given makes Tensor, expected Tokens\(embeddings, attention_mask, …\)'),
        (Tokens(PATCHES[0]), r'Given makes tokens of shape \(12, 8\), expected \(B, L, D\)'),
        (Tokens(PATCHES.transpose(0, 1)), r'Given makes tokens of shape \(12, 2, 8\) of 2 images'),
        (Tokens(PATCHES[..., :6]), 'Given makes tokens 6 wide, expected 8, its embed_dims'),
        (
            Tokens(PATCHES, torch.ones(2, 12)),
            r'Given makes an attention_mask of torch.float32 and shape \(2, 12\), expected to',
        ),
        (
            Tokens(PATCHES, torch.ones(2, 13, dtype=torch.bool)),
            r'an attention_mask of torch.bool and shape \(2, 13\), expected .* \(2, 12\), True for',
        ),
        (
            Tokens(PATCHES, grid_size=(3, 4)),
            'Given makes 12 tokens of a grid of 3 x 4 patches, expected 13, .*put a .CLS. before',
        ),
    ],
)
@pytest.mark.parametrize('token_type', [None, TokenTypeEmbedding(8)])
def test_tokens_that_no_fusion_encoder_takes_are_refused(tokens, message, token_type):
    with pytest.raises(ValueError, match=message):
        encode(Given(tokens), token_type, 'image', PIXELS)


def test_a_grid_after_cls_and_boxes_without_are_taken():
    for tokens in (
        Tokens(PATCHES, grid_size=(1, 11)),
        Tokens(PATCHES, torch.rand(2, 12) < 0.5, boxes=torch.rand(2, 12, 4)),
    ):
        assert encode(Given(tokens), None, 'image', PIXELS) is tokens


WORDS = torch.arange(12) < torch.tensor([[12], [7]])


@pytest.mark.parametrize(
    ('mask', 'message'),
    [
        (None, 'Given makes tokens without an attention_mask, so that padding counts as words'),
        (~WORDS, 'Given makes an attention_mask that is False for the first token .* inverted'),
    ],
)
def test_a_text_encoder_that_shows_padding_is_refused(mask, message):
    with pytest.raises(ValueError, match=message):
        encode(Given(Tokens(PATCHES, mask)), None, 'text', WORDS.long(), WORDS)


@pytest.mark.parametrize('mask', [WORDS, WORDS & (torch.arange(12) != 3), WORDS | True])
def test_a_text_encoder_may_hide_words_and_make_tokens_that_are_no_words(mask):
    tokens = Tokens(PATCHES, mask)
    assert encode(Given(tokens), None, 'text', WORDS.long(), WORDS) is tokens


class Plain(nn.Module):
    """Neither an encoder nor a position."""

    def __init__(self, **_):
        super().__init__()


class Wide(Given):
    """An encoder that does not say how wide its tokens are."""

    embed_dims = None

    def __init__(self, **_):
        super().__init__()


@pytest.mark.parametrize(
    ('part', 'kind', 'message'),
    [
        ('image_encoder', Plain, r"backbone\.image_encoder\.type='Plain' is no Encoder: extend"),
        ('text_encoder', Wide, r'backbone\.text_encoder: Wide has embed_dims=None, expected a wh'),
        ('position', Plain, r"backbone\.position\.type='Plain' is no position: extend NoPosition"),
    ],
)
def test_a_part_of_another_kind_is_named_when_the_model_is_built(config, part, kind, message):
    options = config('none', ('itc', 'itm'))
    options['backbone'][part] = dict(type=kind)
    with pytest.raises(ConfigError, match=message):
        MODELS.build(options)


class Words(BertTextEncoder):
    """A text encoder whose words nobody can ask for."""

    word_embeddings = property()


class Uncounted(Given):
    """A text encoder that does not say how many words it knows."""

    has_cls = True
    embed_dims = 32

    def __init__(self, **_):
        super().__init__()
        self.words = nn.Embedding(40, 32)


@pytest.mark.parametrize(
    ('encoder', 'heads', 'error', 'message'),
    [
        (Words, ('itc', 'itm', 'mlm'), ValueError, r'Words has no word_embeddings'),
        (Words, ('itc', 'itm'), None, None),
        (Uncounted, ('itc', 'itm'), ConfigError, 'Uncounted has no vocab_size, the number of wor'),
    ],
)
def test_what_a_text_encoder_lacks_is_named(config, encoder, heads, error, message):
    options = config('none', heads)
    options['backbone']['text_encoder']['type'] = encoder
    if error is None:
        MODELS.build(options)
        return
    with pytest.raises(error, match=message):
        MODELS.build(options)


@pytest.mark.parametrize('position', ['ape', 'ape+rpe'])
def test_a_position_of_shorter_texts_than_the_preprocessor_cuts_is_an_error(config, position):
    tiny = config(position)
    tiny['backbone']['position'] = dict(tiny['backbone']['position'], max_length=7)
    with pytest.raises(ValueError, match=r'preprocessor\.max_length=8, .*position\.max_length=7'):
        MODELS.build(tiny)


class Short(BertTextEncoder):
    """A text encoder that says itself how long a text may be."""

    max_length = 7


def test_a_text_encoder_of_shorter_texts_than_the_preprocessor_cuts_is_an_error(config):
    tiny = config('none')
    tiny['backbone']['text_encoder']['type'] = Short
    with pytest.raises(ValueError, match=r'preprocessor\.max_length=8, .* has 7 positions'):
        MODELS.build(tiny)


class Around(Given):
    """A text encoder around a model of transformers, of which it says nothing."""

    has_cls, embed_dims, vocab_size = True, 32, 40

    def __init__(self, config):
        super().__init__()
        self.model = BertTextEncoder(config).bert


def test_the_positions_of_a_model_in_a_text_encoder_count(config):
    tiny = config('none', ('itc', 'itm'))
    tiny['backbone']['text_encoder']['type'] = Around
    MODELS.build(tiny)
    tiny['backbone']['text_encoder']['config']['max_position_embeddings'] = 7
    with pytest.raises(ValueError, match=r'preprocessor\.max_length=8, .* has 7 positions'):
        MODELS.build(tiny)


class Miscounted(BertTextEncoder):
    """A text encoder that counts more words than it has vectors of."""

    vocab_size = 41


def test_words_without_a_vector_are_refused_by_mlm(config):
    tiny = config('none', ('itc', 'itm', 'mlm'))
    tiny['backbone']['text_encoder']['type'] = Miscounted
    with pytest.raises(ValueError, match='Miscounted has vocab_size=41 and word_embeddings of 40'):
        MODELS.build(tiny)


class Fewer(nn.Module):
    """An adapter that merges each two tokens."""

    def __init__(self, in_dims, embed_dims):
        super().__init__()
        self.linear = nn.Linear(2 * in_dims, embed_dims)

    def forward(self, embeddings):
        return self.linear(embeddings.unflatten(1, (-1, 2)).flatten(2))


def test_an_adapter_that_changes_the_number_of_tokens_is_refused(config):
    tiny = config('none', ('itc', 'itm'))
    tiny['backbone']['image_adapter'] = dict(type=Fewer)
    model = MODELS.build(tiny)
    with pytest.raises(ValueError, match=r'Fewer, an adapter, makes the shape .*, expected \(2, '):
        model.encode_image(torch.randn(2, 3, 24, 24))
