"""Tiny similarities with random weights, and ragged token sets."""

import pytest
from token_sets import LENGTHS, REGIONS, WIDTH, token_sets
from torch import nn

from xmodal.registry import MODELS

POOLINGS = {
    'self_attention': dict(type='SelfAttentionGlobal', regions=REGIONS),
    't_emde': dict(
        type='SketchGlobal', pooling=dict(type='TEMDE', partitions=3, centroids=4, inner_dims=2)
    ),
    't_emde_scaled': dict(
        type='SketchGlobal',
        pooling=dict(type='TEMDE', partitions=3, centroids=4, inner_dims=2),
        layer_scale=0.3,
    ),
    'none': None,
}


@pytest.fixture(params=['SAF', 'SGR'])
def reasoning(request):
    return request.param


@pytest.fixture(params=list(POOLINGS))
def pooling(request):
    return request.param


@pytest.fixture
def build():
    """Builds a similarity in evaluation mode with random biases and statistics."""

    def make(reasoning='SAF', pooling='t_emde', dropout=0.4, width=WIDTH, **options):
        config = POOLINGS[pooling]
        if pooling == 'self_attention':
            config = {**config, 'dropout': dropout}
        module = MODELS.build(
            dict(
                type='SGRAFSimilarity',
                embed_dims=width,
                dim=16,
                global_pooling=config,
                reasoning=dict(type=reasoning, **options),
            )
        )
        for name, value in module.named_parameters():
            if name.endswith('bias'):
                nn.init.normal_(value, std=0.02)
        for norm in module.modules():
            if isinstance(norm, nn.BatchNorm1d):
                nn.init.normal_(norm.running_mean, std=0.1)
                nn.init.uniform_(norm.running_var, 0.5, 1.5)
        return module.eval()

    return make


@pytest.fixture
def images():
    """Four images."""
    return token_sets([REGIONS] * 4)


@pytest.fixture
def captions():
    """Captions of several lengths."""
    return token_sets(LENGTHS)
