"""Weights of data2vec 2.0, against a literal implementation with its original names."""

import sys

import pytest
import torch
from torch.nn.functional import conv2d, gelu, layer_norm, linear

from tools.model_converters import data2vec2
from xmodal.models.backbones import BertTextEncoder, ViTImageEncoder

WIDTH, HEADS, WORDS = 16, 2, 20
IMAGE, TEXT = 'modality_encoders.IMAGE.', 'modality_encoders.TEXT.'


def block_weights(prefix):
    shapes = {
        'norm1.weight': (WIDTH,),
        'norm1.bias': (WIDTH,),
        'norm2.weight': (WIDTH,),
        'norm2.bias': (WIDTH,),
        'attn.qkv.weight': (3 * WIDTH, WIDTH),
        'attn.qkv.bias': (3 * WIDTH,),
        'attn.proj.weight': (WIDTH, WIDTH),
        'attn.proj.bias': (WIDTH,),
        'mlp.fc1.weight': (4 * WIDTH, WIDTH),
        'mlp.fc1.bias': (4 * WIDTH,),
        'mlp.fc2.weight': (WIDTH, 4 * WIDTH),
        'mlp.fc2.bias': (WIDTH,),
    }
    return {prefix + name: torch.randn(shape) * 0.3 for name, shape in shapes.items()}


def image_weights():
    weights = {
        f'{IMAGE}extra_tokens': torch.randn(1, 1, WIDTH),
        f'{IMAGE}fixed_positional_encoder.positions': torch.randn(1, 9, WIDTH),
        f'{IMAGE}local_encoder.proj.weight': torch.randn(WIDTH, 3, 8, 8) * 0.1,
        f'{IMAGE}local_encoder.proj.bias': torch.randn(WIDTH),
        f'{IMAGE}context_encoder.norm.weight': torch.randn(WIDTH),
        f'{IMAGE}context_encoder.norm.bias': torch.randn(WIDTH),
        f'{IMAGE}decoder.proj.weight': torch.randn(3, 3),
    }
    for index in range(2):
        weights |= block_weights(f'{IMAGE}context_encoder.blocks.{index}.')
    for index in range(11):  # two digits: 10 comes after 2
        weights |= block_weights(f'blocks.{index}.')
    return weights


def text_weights():
    weights = {
        f'{TEXT}local_encoder.embed_tokens.weight': torch.randn(WORDS, WIDTH),
        f'{TEXT}local_encoder.embed_positions.weight': torch.randn(2 + 12, WIDTH),
        f'{TEXT}local_encoder.layernorm_embedding.weight': torch.randn(WIDTH),
        f'{TEXT}local_encoder.layernorm_embedding.bias': torch.randn(WIDTH),
        'recon_proj.weight': torch.randn(3, 3),
    }
    for index in range(3):
        weights |= block_weights(f'blocks.{index}.')
    return weights


def norm(weights, name, x, eps):
    return layer_norm(x, (WIDTH,), weights[f'{name}.weight'], weights[f'{name}.bias'], eps)


def block(weights, prefix, x, eps, padding=None):
    """AltBlock with layer_norm_first=False."""
    w = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
    qkv = linear(x, w['attn.qkv.weight'], w['attn.qkv.bias'])
    query, key, value = (
        y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in qkv.split(WIDTH, dim=-1)
    )
    logits = query * (WIDTH / HEADS) ** -0.5 @ key.transpose(-1, -2)
    if padding is not None:
        logits = logits.masked_fill(padding[:, None, None], -torch.inf)
    attended = (logits.softmax(-1) @ value).transpose(1, 2).flatten(2)
    x = norm(w, 'norm1', x + linear(attended, w['attn.proj.weight'], w['attn.proj.bias']), eps)
    hidden = gelu(linear(x, w['mlp.fc1.weight'], w['mlp.fc1.bias']))
    return norm(w, 'norm2', x + linear(hidden, w['mlp.fc2.weight'], w['mlp.fc2.bias']), eps)


def encode_image(weights, images, depth):
    projection = f'{IMAGE}local_encoder.proj.'
    patches = conv2d(images, weights[f'{projection}weight'], weights[f'{projection}bias'], stride=8)
    x = patches.flatten(2).transpose(1, 2) + weights[f'{IMAGE}fixed_positional_encoder.positions']
    x = torch.cat([weights[f'{IMAGE}extra_tokens'].expand(len(x), -1, -1), x], 1)
    x = norm(weights, f'{IMAGE}context_encoder.norm', x, 1e-6)
    prefixes = [f'{IMAGE}context_encoder.blocks.{i}.' for i in range(2)]
    prefixes += [f'blocks.{i}.' for i in range(11)]
    for prefix in prefixes[:depth]:
        x = block(weights, prefix, x, 1e-6)
    return x


def encode_text(weights, ids, depth):
    local = f'{TEXT}local_encoder.'
    padding = ids == 1
    positions = 1 + (~padding).cumsum(1).masked_fill(padding, 0)
    x = weights[f'{local}embed_tokens.weight'][ids]
    x = x + weights[f'{local}embed_positions.weight'][positions]
    x = norm(weights, f'{local}layernorm_embedding', x, 1e-5)
    for index in range(depth):
        x = block(weights, f'blocks.{index}.', x, 1e-5, padding)
    return x


@pytest.fixture
def convert(tmp_path, monkeypatch):
    def run(content, out):
        torch.save(content, tmp_path / 'source.pt')
        argv = ['data2vec2.py', tmp_path / 'source.pt', tmp_path / out, '--heads', HEADS]
        monkeypatch.setattr(sys, 'argv', [str(word) for word in argv])
        data2vec2.main()
        return str(tmp_path / out)

    return run


@torch.no_grad()
@pytest.mark.parametrize('depth', [1, 6, 13])
def test_images_are_encoded_as_by_data2vec(convert, capsys, depth):
    weights, images = image_weights(), torch.randn(2, 3, 24, 24)
    file = convert({'model': {**weights, '_ema': {'blocks.0': torch.zeros(1)}}}, 'image.pth')
    encoder = ViTImageEncoder(
        image_size=24,
        patch_size=8,
        embed_dim=WIDTH,
        num_heads=HEADS,
        depth=depth,
        post_norm=True,
        pretrained=file,
    ).eval()
    encoder.init_weights()
    expected = encode_image(weights, images, depth)
    torch.testing.assert_close(encoder(images).embeddings, expected, atol=1e-4, rtol=1e-4)
    printed = capsys.readouterr().out
    assert '13 blocks' in printed and f'not used: 1\n  {IMAGE}decoder' in printed


@torch.no_grad()
@pytest.mark.parametrize('depth', [1, 3])
def test_texts_are_encoded_as_by_data2vec(convert, depth):
    weights = text_weights()
    folder = convert({'model': weights}, 'text')
    encoder = BertTextEncoder(folder, num_layers=depth, pretrained=folder).eval()
    encoder.init_weights()
    ids = torch.randint(4, WORDS, (2, 6))
    ids[1, 4:] = 1
    mask = ids != 1
    actual = encoder(ids, mask).embeddings
    expected = encode_text(weights, ids, depth)
    torch.testing.assert_close(actual[mask], expected[mask], atol=1e-4, rtol=1e-4)


def test_a_file_of_another_model_is_an_error(convert):
    with pytest.raises(ValueError, match='is this a file of data2vec 2.0'):
        convert({'model': {'blocks.0.norm1.weight': torch.zeros(3)}}, 'image.pth')


def test_a_file_that_lacks_a_weight_is_an_error(convert):
    weights = image_weights()
    del weights[f'{IMAGE}extra_tokens']
    with pytest.raises(ValueError, match="has no 'modality_encoders.IMAGE.extra_tokens'"):
        convert({'model': weights}, 'image.pth')
    weights = image_weights()
    del weights['blocks.3.norm2.bias']
    with pytest.raises(RuntimeError, match='blocks.5.norm2.bias'):
        convert({'model': weights}, 'image.pth')


def test_objects_in_a_file_are_not_loaded_and_the_error_says_what_to_do(convert):
    with pytest.raises(ValueError, match='trust the file, extract its weights first'):
        convert({'model': image_weights(), 'cfg': pytest.raises}, 'image.pth')
