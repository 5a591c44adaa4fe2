"""The text encoder."""

import pytest
import torch
from transformers import BertConfig, BertModel

from xmodal.models.backbones import BertTextEncoder, BertWordEncoder

TINY = dict(
    vocab_size=40,
    hidden_size=16,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=8,
)


@pytest.fixture
def saved_bert(tmp_path):
    bert = BertModel(BertConfig(**TINY), add_pooling_layer=False).eval()
    bert.save_pretrained(tmp_path)
    return bert, str(tmp_path)


@torch.no_grad()
def test_it_is_the_first_layers_of_a_saved_bert(saved_bert):
    bert, folder = saved_bert
    encoder = BertTextEncoder(folder, num_layers=2, pretrained=folder).eval()
    encoder.init_weights()
    ids = torch.randint(40, (2, 6))
    mask = torch.arange(6)[None] < torch.tensor([[6], [4]])
    actual = encoder(ids, mask)
    states = bert(ids, mask.long(), output_hidden_states=True).hidden_states
    torch.testing.assert_close(actual.embeddings[mask], states[2][mask])
    assert actual.attention_mask is mask
    assert actual.grid_size is None


def test_building_reads_no_weights(saved_bert):
    bert, folder = saved_bert
    encoder = BertTextEncoder(folder, pretrained=folder)
    assert not encoder.word_embeddings.equal(bert.embeddings.word_embeddings.weight)


def test_sizes_come_from_the_config():
    encoder = BertTextEncoder(TINY)
    assert (encoder.embed_dims, encoder.vocab_size) == (16, 40)
    assert encoder.word_embeddings.shape == (40, 16)


def test_missing_weights_are_a_clear_error(tmp_path):
    encoder = BertTextEncoder(TINY, pretrained=str(tmp_path))
    with pytest.raises(FileNotFoundError, match='text_encoder.pretrained=.* is neither'):
        encoder.init_weights()


@torch.no_grad()
def test_for_matching_every_word_piece_is_projected_and_normalised(saved_bert):
    bert, folder = saved_bert
    encoder = BertWordEncoder(embed_dims=6, config=folder, pretrained=folder).eval()
    encoder.init_weights()
    ids = torch.randint(40, (2, 5))
    mask = torch.arange(5)[None] < torch.tensor([[5], [3]])
    actual = encoder(ids, mask)
    states = bert(ids, mask.long()).last_hidden_state
    for b, word in mask.nonzero().tolist():
        expected = encoder.projection.weight @ states[b, word]
        torch.testing.assert_close(actual.embeddings[b, word], expected / expected.norm())
    assert actual.attention_mask is mask
    assert encoder.embed_dims == 6


@torch.no_grad()
@pytest.mark.parametrize('num_layers', [1, 3])
def test_outputs_equal_those_of_transformers_also_in_padding(num_layers):
    encoder = BertTextEncoder(TINY, num_layers=num_layers).eval()
    bert = BertModel(
        BertConfig(**{**TINY, 'num_hidden_layers': num_layers}), add_pooling_layer=False
    ).eval()
    bert.load_state_dict(encoder.bert.state_dict())
    ids = torch.randint(40, (3, 6))
    mask = torch.arange(6)[None] < torch.tensor([[6], [4], [1]])
    expected = bert(ids, attention_mask=mask.long()).last_hidden_state
    torch.testing.assert_close(encoder(ids, mask).embeddings, expected, atol=1e-6, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize('count', [0, 1, 2])
def test_words_of_the_first_layers_are_the_hidden_states_of_transformers(count):
    encoder = BertTextEncoder(TINY, num_layers=3).eval()
    ids = torch.randint(40, (3, 6))
    mask = torch.arange(6)[None] < torch.tensor([[6], [4], [1]])
    states = encoder.bert(ids, attention_mask=mask.long(), output_hidden_states=True).hidden_states
    words = encoder.encode_words(ids, mask, count)
    torch.testing.assert_close(words.embeddings, states[count], atol=1e-6, rtol=0)
    assert words.attention_mask is mask


@torch.no_grad()
def test_embed_and_encode_are_the_two_steps_of_forward():
    for encoder in (BertTextEncoder(TINY), BertWordEncoder(embed_dims=6, config=TINY)):
        encoder = encoder.eval()
        ids = torch.randint(40, (2, 6))
        mask = torch.arange(6)[None] < torch.tensor([[6], [4]])
        embedded = encoder.embed(ids, mask)
        assert embedded.embeddings.shape == (2, 6, 16)
        assert encoder.encode(embedded).embeddings.equal(encoder(ids, mask).embeddings)
