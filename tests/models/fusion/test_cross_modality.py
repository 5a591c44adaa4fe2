"""The cross-modality encoder: the order of its steps, its weights, and positions in it."""

import pytest
import torch

from xmodal.models.fusion import CrossModalityEncoder
from xmodal.models.necks import NoPosition
from xmodal.registry import MODELS
from xmodal.structures import Tokens

WIDTH, HEADS = 32, 2
NONE = NoPosition(2, WIDTH, HEADS)
REGION_POSITIONS = [
    'none',
    'uniform',
    'ace_rpe',
    'ace_rpe bias',
    'ace_rpe learned',
    'ace_rpe far',
    'anchor_ape',
]


def make_encoder(depth=2, dropout=0.0, **switches):
    encoder = CrossModalityEncoder(depth, WIDTH, HEADS, dropout=dropout, **switches)
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return encoder


@pytest.fixture
def pair():
    """Makes regions and words, tokens of both."""

    def make(batch=2, regions=5, words=6, lengths=(6, 4), counts=None):
        boxes = torch.rand(batch, regions, 2).repeat(1, 1, 2) * 0.8
        boxes[..., 2:] += 0.2
        counts = torch.tensor(counts or [regions] * batch)
        image = Tokens(
            torch.randn(batch, regions, WIDTH), torch.arange(regions) < counts[:, None], None, boxes
        )
        mask = torch.arange(words) < torch.tensor(lengths)[:, None]
        return image, Tokens(torch.randn(batch, words, WIDTH), mask)

    return make


def literal_attention(attention, norm, queries, context, mask):
    """One row: softmax(q k / √d) v, head by head, token by token."""
    query, key, value = (attention.q_proj, attention.k_proj, attention.v_proj)
    size = WIDTH // HEADS
    rows = []
    for token in queries:
        heads = []
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            q = query(token)[part]
            tokens = [x for x, is_real in zip(context, mask, strict=True) if is_real]
            logits = torch.stack([q @ key(x)[part] / size**0.5 for x in tokens])
            values = torch.stack([value(x)[part] for x in tokens])
            heads.append(logits.softmax(0) @ values)
        rows.append(norm(token + attention.out_proj(torch.cat(heads))))
    return torch.stack(rows)


def literal_encoder_layer(layer, tokens, mask):
    """Self-attention and feed-forward of one row."""
    attended = literal_attention(layer.self_attention, layer.self_norm, tokens, tokens, mask)
    feed = layer.feed_forward
    hidden = torch.nn.functional.gelu(feed.fc1(attended))
    return feed.norm(attended + feed.fc2(hidden))


@torch.no_grad()
@pytest.mark.parametrize('shared', [True, False])
def test_a_layer_is_cross_attention_of_its_inputs_then_self_attention_then_feed_forward(
    pair, shared
):
    image, text = pair(counts=[5, 3])
    encoder = make_encoder(share_cross_attention=shared).eval()
    actual = encoder(image, text, NONE)
    for row in range(2):
        v, h = image.embeddings[row], text.embeddings[row]
        regions, words = image.attention_mask[row], text.attention_mask[row]
        for layer in encoder.layers:
            to_image, to_text = layer.cross_attention[0], layer.cross_attention[-1]
            crossed = literal_attention(to_image.attention, to_image.norm, h, v, regions)
            v = literal_attention(to_text.attention, to_text.norm, v, h, words)
            h = literal_encoder_layer(layer.text_layer, crossed, words)
            v = literal_encoder_layer(layer.image_layer, v, regions)
        torch.testing.assert_close(actual.text_tokens[row][words], h[words], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(
            actual.image_tokens[row][regions], v[regions], atol=1e-4, rtol=1e-4
        )


def test_both_directions_share_their_weights_unless_switched_off():
    sizes = {
        shared: sum(p.numel() for p in make_encoder(1, share_cross_attention=shared).parameters())
        for shared in (True, False)
    }
    cross_attention = 4 * (WIDTH * WIDTH + WIDTH) + 2 * WIDTH  # Q, K, V, output, norm
    assert sizes[False] - sizes[True] == cross_attention


@torch.no_grad()
def test_without_the_image_stream_the_words_do_not_change(pair):
    image, text = pair()
    encoder = make_encoder().eval()
    expected, actual = encoder(image, text, NONE), encoder(image, text, NONE, need_image=False)
    assert actual.image_tokens is None
    assert actual.text_tokens.equal(expected.text_tokens)


@torch.no_grad()
def test_attentions_are_probabilities_of_real_tokens(pair):
    image, text = pair(counts=[5, 3])
    fused = make_encoder().eval()(image, text, NONE, need_attentions=True)
    assert len(fused.attentions) == 2
    for attention in fused.attentions:
        torch.testing.assert_close(attention.text_to_image.sum(-1), torch.ones(2, HEADS, 6))
        assert (attention.text_to_image[1, ..., 3:] == 0).all()
        assert (attention.image_to_text[1, ..., 4:] == 0).all()


@torch.no_grad()
@pytest.mark.parametrize('name', REGION_POSITIONS)
def test_padded_regions_change_no_output(pair, build_position, name):
    image, text = pair(regions=12, counts=[10, 10])
    position, encoder = build_position(name), make_encoder().eval()
    short = Tokens(
        image.embeddings[:, :10], image.attention_mask[:, :10], None, image.boxes[:, :10]
    )
    padded, plain = (encoder(tokens, text, position) for tokens in (image, short))
    close = dict(atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(padded.text_tokens, plain.text_tokens, **close)
    torch.testing.assert_close(padded.image_tokens[:, :10], plain.image_tokens, **close)


@pytest.mark.parametrize('name', REGION_POSITIONS[1:])
def test_positions_change_words_and_regions_and_get_gradients(pair, build_position, name):
    image, text = pair()
    position, encoder = build_position(name), make_encoder().eval()
    actual, plain = encoder(image, text, position), encoder(image, text, NONE)
    assert not torch.allclose(actual.text_tokens, plain.text_tokens, atol=1e-4)
    assert not torch.allclose(actual.image_tokens, plain.image_tokens, atol=1e-4)
    (actual.text_tokens.sum() + actual.image_tokens.square().sum()).backward()
    for parameter in position.parameters():
        assert parameter.grad.isfinite().all() and parameter.grad.any()


@torch.no_grad()
def test_a_new_position_changes_no_output(pair, build_position):
    image, text = pair()
    encoder = make_encoder().eval()
    actual = encoder(image, text, build_position('ace_rpe', random=False))
    plain = encoder(image, text, NONE)
    torch.testing.assert_close(actual.text_tokens, plain.text_tokens, atol=1e-5, rtol=1e-5)


def test_half_precision_gives_finite_tokens(pair, build_position):
    image, text = pair()
    with torch.autocast('cpu', torch.bfloat16):
        fused = make_encoder()(image, text, build_position('ace_rpe'))
    assert fused.text_tokens.isfinite().all() and fused.image_tokens.isfinite().all()


def test_it_is_registered():
    assert MODELS.get('CrossModalityEncoder') is CrossModalityEncoder
