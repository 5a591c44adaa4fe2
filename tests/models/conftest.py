"""A tiny model with random weights, and a batch for it."""

import pytest
import torch

from xmodal.registry import MODELS
from xmodal.structures import DataSample, ImageTextBatch, Tokens

WIDTH, GRID, WORDS = 32, (3, 3), 6
POSITIONS = {
    'none': dict(type='NoPosition'),
    'ape': dict(type='AbsolutePosition', grid_size=GRID, max_length=8),
    'rpe': dict(type='RelativePosition', max_text_offset=3, max_image_offset=1),
    'ape+rpe': dict(type='AbsoluteRelativePosition', grid_size=GRID, max_length=8),
    'uniform': dict(type='UniformPosition', groups=4),
    'ace_rpe': dict(type='AnchorRelativePosition', groups=4),
    'ace_rpe far': dict(type='AnchorRelativePosition', groups=4, null='far'),
    'ace_rpe learned': dict(type='AnchorRelativePosition', groups=4, null='learned'),
    'ace_rpe shared': dict(type='AnchorRelativePosition', groups=4, shared=True),
    'ace_rpe query': dict(type='AnchorRelativePosition', groups=4, key=False, value=False),
    'ace_rpe key': dict(type='AnchorRelativePosition', groups=4, query=False, value=False),
    'ace_rpe value': dict(type='AnchorRelativePosition', groups=4, query=False, key=False),
    'anchor_ape': dict(type='AnchorAbsolutePosition', groups=4),
    'ace_rpe bias': dict(type='AnchorRelativePosition', groups=4, mode='bias'),
}
HEADS = {
    'itc': dict(type='ITCHead'),
    'ace': dict(type='AnchorHead'),
    'itm': dict(type='ITMHead'),
    'mlm': dict(type='MLMHead', mask_probability=0.5),
    'mim': dict(type='MIMHead', block=8),
}
SOURCES = {('mim', 'text'): dict(source='image_encoder')}  # there is no image stream


@pytest.fixture(scope='session')
def vocabulary(tmp_path_factory):
    """A vocabulary file of 40 words."""
    words = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *(f'word{i}' for i in range(35))]
    path = tmp_path_factory.mktemp('vocabulary') / 'vocab.txt'
    path.write_text('\n'.join(words))
    return str(path)


@pytest.fixture
def config(vocabulary):
    """Makes the config of a tiny pre-trainer."""

    def make(position='ace_rpe', heads=tuple(HEADS), streams='both', dropout=0.0, **model):
        return dict(
            type='AlbefPretrainer',
            data_preprocessor=dict(
                type='ImageTextPreprocessor',
                mean=[127.5] * 3,
                std=[63.75] * 3,
                tokenizer=dict(pretrained=vocabulary),
                max_length=8,
            ),
            backbone=dict(
                image_encoder=dict(
                    type='ViTImageEncoder',
                    image_size=24,
                    patch_size=8,
                    embed_dim=WIDTH,
                    num_heads=2,
                    depth=1,
                ),
                text_encoder=dict(
                    type='BertTextEncoder',
                    config=dict(
                        vocab_size=40,
                        hidden_size=WIDTH,
                        num_hidden_layers=1,
                        num_attention_heads=2,
                        intermediate_size=2 * WIDTH,
                        max_position_embeddings=8,
                        hidden_dropout_prob=dropout,
                        attention_probs_dropout_prob=dropout,
                    ),
                ),
                position=POSITIONS[position],
                fusion=dict(
                    type='FusionEncoder',
                    depth=2,
                    embed_dims=WIDTH,
                    num_heads=2,
                    dropout=dropout,
                    streams=streams,
                ),
                proj_dims=16,
            ),
            heads={name: HEADS[name] | SOURCES.get((name, streams), {}) for name in heads},
            **{'queue_length': 10, **model},
        )

    return make


@pytest.fixture
def build(config):
    """Builds a tiny pre-trainer."""
    return lambda *args, **kwargs: MODELS.build(config(*args, **kwargs))


@pytest.fixture
def batch():
    """Makes a training batch; ids default to all different."""

    def make(size=4, image_ids=None, text_ids=None, lengths=None, side=24):
        lengths = torch.tensor(lengths or [WORDS - i % 3 for i in range(size)])
        mask = torch.arange(WORDS)[None] < lengths[:, None]
        input_ids = torch.randint(5, 40, (size, WORDS))
        input_ids[:, 0] = 2
        input_ids[torch.arange(size), lengths - 1] = 3
        image_ids = torch.tensor(image_ids or list(range(size)))
        return ImageTextBatch(
            images=torch.randn(size, 3, side, side),
            input_ids=input_ids.masked_fill(~mask, 0),
            attention_mask=mask,
            image_ids=image_ids,
            text_ids=torch.tensor(text_ids or list(range(100, 100 + size))),
            text_image_ids=image_ids,
        )

    return make


@pytest.fixture
def samples():
    """Makes what a data loader yields, for captions by image."""

    def make(captions, side=24):
        data_samples = []
        for index, text in enumerate(captions):
            sample = DataSample(metainfo=dict(image_path=f'{index}.png', sample_index=index))
            sample.image_id, sample.text = index, text
            data_samples.append(sample)
        size = (len(captions), 3, side, side)
        images = torch.randint(0, 256, size, dtype=torch.uint8)
        return dict(inputs=images, data_samples=data_samples)

    return make


@pytest.fixture
def tokens():
    """Makes random image and text tokens, (B, 1 + M, D) and (B, 1 + N, D)."""

    def make(batch=2, grid=GRID, words=WORDS, lengths=None, width=WIDTH, dtype=torch.float32):
        lengths = torch.tensor(lengths or [words - i % 3 for i in range(batch)])
        patches = 1 + grid[0] * grid[1]
        return (
            Tokens(torch.randn(batch, patches, width, dtype=dtype), None, grid),
            Tokens(
                torch.randn(batch, words, width, dtype=dtype),
                torch.arange(words)[None] < lengths[:, None],
            ),
        )

    return make


@pytest.fixture
def build_position():
    """Builds a position whose parameters, zero at the start, are random."""

    def make(name, depth=2, width=WIDTH, num_heads=2, random=True):
        sizes = dict(depth=depth, embed_dims=width, num_heads=num_heads)
        position = MODELS.build({**POSITIONS[name], **sizes})
        if random:
            for parameter in position.parameters():
                torch.nn.init.normal_(parameter, std=0.1)
        return position

    return make


@pytest.fixture(params=list(POSITIONS))
def position_name(request):
    """Every position and switch."""
    return request.param
