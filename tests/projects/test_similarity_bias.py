"""projects/similarity_bias: a position from outside the package."""

import torch
from mmengine.config import Config
from torch.nn.functional import cosine_similarity

from xmodal.registry import MODELS
from xmodal.structures import Tokens

CONFIG = 'projects/similarity_bias/pretrain_shapes.py'


def test_the_config_registers_the_position_and_changes_nothing_else(monkeypatch):
    monkeypatch.syspath_prepend('.')
    base = Config.fromfile('configs/acerpe/pretrain_shapes.py')
    config = Config.fromfile(CONFIG)
    assert MODELS.get('SimilarityBias').__module__ == 'projects.similarity_bias.similarity_bias'
    assert config.model.backbone.position == dict(type='SimilarityBias')
    config.model.backbone.position = base.model.backbone.position
    assert config.model == base.model


def test_the_bias_is_the_scaled_cosine_of_each_pair(monkeypatch):
    monkeypatch.syspath_prepend('.')
    Config.fromfile(CONFIG)
    position = MODELS.build(dict(type='SimilarityBias', depth=2, embed_dims=8, num_heads=2))
    position.scale.data = torch.tensor([1.0, 3.0])
    image = Tokens(torch.randn(2, 5, 8), grid_size=(2, 2))
    text = Tokens(torch.randn(2, 4, 8), torch.ones(2, 4, dtype=torch.bool))
    relation = position.relate(image, text)
    bias = position.cross_terms(1, relation, 'text').bias
    assert bias.shape == (2, 1, 4, 5)
    for b in range(2):
        for n in range(4):
            for m in range(5):
                cosine = cosine_similarity(text.embeddings[b, n], image.embeddings[b, m], dim=0)
                torch.testing.assert_close(bias[b, 0, n, m], 3 * cosine)
    image_bias = position.cross_terms(0, relation, 'image').bias
    torch.testing.assert_close(3 * image_bias.transpose(2, 3), bias)
