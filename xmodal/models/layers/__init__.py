"""Layers that several encoders share."""

from xmodal.models.layers.adapter import TokenAdapter
from xmodal.models.layers.attention import NO_TERMS, QKV, Attention
from xmodal.models.layers.conv_stem import ConvStem
from xmodal.models.layers.encoder_layer import EncoderLayer
from xmodal.models.layers.feed_forward import FeedForward
from xmodal.models.layers.init import init_linear, xavier_linear
from xmodal.models.layers.pooling import (
    GPOPooling,
    MaxPooling,
    MeanMaxPooling,
    MeanPooling,
    build_pooling,
    pool,
)
from xmodal.models.layers.post_norm import PostNormBlock
from xmodal.models.layers.projection import make_projection
from xmodal.models.layers.running_statistics import move_statistics

__all__ = [
    'NO_TERMS',
    'QKV',
    'Attention',
    'ConvStem',
    'EncoderLayer',
    'FeedForward',
    'GPOPooling',
    'MaxPooling',
    'MeanMaxPooling',
    'MeanPooling',
    'PostNormBlock',
    'TokenAdapter',
    'build_pooling',
    'init_linear',
    'make_projection',
    'move_statistics',
    'pool',
    'xavier_linear',
]
