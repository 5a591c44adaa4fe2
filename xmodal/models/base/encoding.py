"""Tokens of one modality, and what a fusion encoder takes of an encoder's tokens."""

import math

import torch
from torch import Tensor

from xmodal import functional as F
from xmodal.models.backbones.encoder import Encoder
from xmodal.models.necks.token_type import TokenTypeEmbedding
from xmodal.structures import Regions, Tokens


def encode(
    encoder: Encoder, token_type: TokenTypeEmbedding | None, modality: str, *inputs
) -> Tokens:
    """Tokens of one modality, with its token type before or after the encoder's blocks.

    Raises:
        ValueError: when they are not what a fusion encoder takes.
    """
    place = token_type and token_type.position
    if place == 'pre_encoder':
        tokens = encoder.encode(_add_type(encoder.embed(*inputs), token_type, modality))
    else:
        tokens = encoder(*inputs)
    unfit = _what_is_unfit(tokens, encoder.embed_dims, inputs[0])
    if not unfit and modality == 'text':
        unfit = _how_padding_shows(tokens.attention_mask, inputs[1])
    if unfit:
        raise ValueError(f'{type(encoder).__name__} makes {unfit}')
    return _add_type(tokens, token_type, modality) if place == 'post_encoder' else tokens


def _what_is_unfit(tokens: Tokens, embed_dims: int, items: Tensor | Regions) -> str | None:
    """What a fusion encoder does not take of an encoder's tokens, and what it expects."""
    if not isinstance(tokens, Tokens):
        return f'{type(tokens).__name__}, expected Tokens(embeddings, attention_mask, …)'
    shape, mask, grid_size = tokens.embeddings.shape, tokens.attention_mask, tokens.grid_size
    if len(shape) != 3:
        return f'tokens of shape {tuple(shape)}, expected (B, L, D)'
    if shape[2] != embed_dims:
        return f'tokens {shape[2]} wide, expected {embed_dims}, its embed_dims'
    count = (items.features if isinstance(items, Regions) else items).shape[0]
    if shape[0] != count:
        return f'tokens of shape {tuple(shape)} of {count} images or texts, expected (B, L, D)'
    if mask is not None and (mask.dtype != torch.bool or mask.shape != shape[:2]):
        return (
            f'an attention_mask of {mask.dtype} and shape {tuple(mask.shape)}, expected torch.bool '
            f'and {tuple(shape[:2])}, True for real tokens'
        )
    if grid_size is not None and shape[1] != 1 + math.prod(grid_size):
        return (
            f'{shape[1]} tokens of a grid of {grid_size[0]} x {grid_size[1]} patches, expected '
            f'{1 + math.prod(grid_size)}, [CLS] and the patches: put a [CLS] before them, or give '
            'them boxes in place of a grid_size'
        )
    return None


def _how_padding_shows(mask: Tensor | None, given: Tensor) -> str | None:
    """What is wrong with the mask of a text encoder, whose inputs have the mask ``given``, (B, N).

    Padding that counts as words is no error anywhere: a text gets another embedding beside a longer
    one.
    """
    if mask is None:
        return (
            'tokens without an attention_mask, so that padding counts as words: hand on that of '
            'the inputs, or, if none of the tokens is padding, one that is True'
        )
    # The mask of the inputs is right, and a GPU is not waited for.
    if mask is not given and not F.is_exporting() and not mask[:, 0].all():
        return (
            'an attention_mask that is False for the first token of a text, which is real: is it '
            'inverted, as that of nn.TransformerEncoder? Expected True for real tokens'
        )
    return None


def _add_type(tokens: Tokens, token_type: TokenTypeEmbedding, modality: str) -> Tokens:
    return tokens.with_embeddings(token_type(tokens.embeddings, modality))
