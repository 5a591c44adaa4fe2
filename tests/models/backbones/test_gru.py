"""The recurrent text encoder."""

import pytest
import torch

from xmodal.models.backbones import GruTextEncoder
from xmodal.registry import MODELS
from xmodal.vocabulary import SPECIAL_WORDS, Vocabulary

TINY = dict(word_dims=4, embed_dims=6)


@pytest.fixture
def texts():
    """Three texts of 5, 2 and 1 words."""
    mask = torch.arange(5) < torch.tensor([[5], [2], [1]])
    return torch.randint(1, 20, (3, 5)) * mask, mask


@pytest.fixture
def files(tmp_path):
    """A vocabulary of 7 words, and a writer of word vectors."""
    Vocabulary([*SPECIAL_WORDS, 'red', 'ring', 'bar']).write(tmp_path / 'vocab.json')

    def write(text):
        (tmp_path / 'glove.txt').write_text(text, encoding='utf-8')
        paths = dict(word_vectors=tmp_path / 'glove.txt', vocabulary=tmp_path / 'vocab.json')
        return {name: str(path) for name, path in paths.items()}

    return write


def step(cell, side, x, state):
    """One step of a GRU (Cho et al., 2014) with PyTorch's order of the gates."""
    names = ('weight_ih', 'weight_hh', 'bias_ih', 'bias_hh')
    w_x, w_h, b_x, b_h = (getattr(cell, f'{name}_l0{side}') for name in names)
    (rx, zx, nx), (rh, zh, nh) = (w_x @ x + b_x).chunk(3), (w_h @ state + b_h).chunk(3)
    reset, update = (rx + rh).sigmoid(), (zx + zh).sigmoid()
    return (1 - update) * (nx + reset * nh).tanh() + update * state


@torch.no_grad()
def test_a_word_is_the_normalised_mean_of_both_directions(texts):
    ids, mask = texts
    encoder = MODELS.build(dict(type='GruTextEncoder', vocab_size=20, **TINY)).eval()
    actual = encoder(ids, mask)
    for b, length in enumerate(mask.sum(1).tolist()):
        words = encoder.embedding.weight[ids[b, :length]]
        states = torch.zeros(2, length + 2, 6)
        for i in range(length):
            states[0, i + 1] = step(encoder.gru, '', words[i], states[0, i])
        for i in reversed(range(length)):
            states[1, i + 1] = step(encoder.gru, '_reverse', words[i], states[1, i + 2])
        expected = states[:, 1:-1].mean(0)
        expected = expected / expected.norm(dim=1, keepdim=True)
        torch.testing.assert_close(actual.embeddings[b, :length], expected, atol=1e-5, rtol=1e-5)
    assert (actual.embeddings[~mask] == 0).all()
    assert actual.attention_mask is mask and actual.grid_size is None


@torch.no_grad()
def test_embed_and_encode_are_the_two_steps_of_forward(texts):
    encoder = GruTextEncoder(20, **TINY).eval()
    embedded = encoder.embed(*texts)
    assert embedded.embeddings.equal(encoder.embedding.weight[texts[0]])
    assert encoder.encode(embedded).embeddings.equal(encoder(*texts).embeddings)


def test_padding_changes_nothing_and_gives_finite_gradients(texts):
    ids, mask = texts
    results = []
    encoder = GruTextEncoder(20, **TINY, dropout=0.0)
    for filling in (0, 7):
        encoder.zero_grad()
        embeddings = encoder(ids.masked_fill(~mask, filling), mask).embeddings
        (embeddings * torch.arange(6)).sum().backward()
        gradients = [parameter.grad.clone() for parameter in encoder.parameters()]
        assert all(gradient.isfinite().all() and gradient.any() for gradient in gradients)
        results.append([embeddings.detach(), *gradients])
    assert all(a.equal(b) for a, b in zip(*results, strict=True))


def test_dropout_acts_on_words_in_training_alone(texts):
    encoder = GruTextEncoder(20, **TINY)
    assert encoder.dropout.p == 0.4
    assert not encoder(*texts).embeddings.equal(encoder(*texts).embeddings)
    encoder.eval()
    assert encoder(*texts).embeddings.equal(encoder(*texts).embeddings)


def test_it_starts_with_small_random_word_vectors():
    vectors = GruTextEncoder(2000).embedding.weight.detach()
    assert vectors.shape == (2000, 300)
    assert vectors.min() >= -0.1 and vectors.max() <= 0.1
    assert vectors.std() == pytest.approx(0.2 / 12**0.5, rel=0.01)


def test_bfloat16_autocast_stays_near_float32(texts):
    encoder = GruTextEncoder(20, **TINY).eval()
    expected = encoder(*texts).embeddings
    with torch.autocast('cpu', torch.bfloat16):
        actual = encoder(*texts).embeddings
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual, expected, atol=0.05, rtol=0.05)


def test_word_vectors_are_read_when_training_starts(files):
    text = 'red 1 2 3 4\n. . . 0 0 0 0\nblue 5 5 5 5\nbar 1e-1 0 0 -2\n'
    encoder = GruTextEncoder(7, **TINY, **files(text))
    before = encoder.embedding.weight.detach().clone()
    encoder.init_weights()
    actual = encoder.embedding.weight
    assert actual[4].tolist() == [1, 2, 3, 4]
    torch.testing.assert_close(actual[6], torch.tensor([0.1, 0, 0, -2]))
    words_without_vector = [0, 1, 2, 3, 5]
    assert actual[words_without_vector].equal(before[words_without_vector])


@pytest.mark.parametrize('line', ['ring 1 2 x 4', 'ring 1 2 3', 'ring 1 2 nan 4'])
def test_a_malformed_line_of_word_vectors_is_named(files, line):
    encoder = GruTextEncoder(7, **TINY, **files(f'red 1 2 3 4\n{line}\n'))
    with pytest.raises(ValueError, match=r'glove.txt, line 2: expected a word and 4 numbers'):
        encoder.init_weights()


def test_word_vectors_that_share_no_word_are_a_clear_error(files):
    encoder = GruTextEncoder(7, **TINY, **files('blue 1 2 3 4\n'))
    with pytest.raises(ValueError, match='for none of the 7 words'):
        encoder.init_weights()


def test_a_vocabulary_of_another_size_is_a_clear_error(files):
    encoder = GruTextEncoder(8, **TINY, **files('red 1 2 3 4\n'))
    with pytest.raises(ValueError, match='has 7 words, but text_encoder.vocab_size=8'):
        encoder.init_weights()


def test_a_missing_file_of_word_vectors_is_a_clear_error(files, tmp_path):
    options = files('') | dict(word_vectors=str(tmp_path / 'none.txt'))
    with pytest.raises(FileNotFoundError, match='none.txt. is no file: get GloVe'):
        GruTextEncoder(7, **TINY, **options).init_weights()


def test_word_vectors_without_a_vocabulary_are_a_clear_error():
    with pytest.raises(ValueError, match='needs text_encoder.vocabulary'):
        GruTextEncoder(7, word_vectors='glove.txt')
