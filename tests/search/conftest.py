"""A small model with random weights."""

import pytest
import torch

from xmodal.apis import Inferencer
from xmodal.registry import MODELS


@pytest.fixture
def inferencer(relocated, tiny_world, tmp_path):
    config = relocated('configs/acerpe/pretrain_shapes.py', tiny_world)
    config.model.backbone.image_encoder.update(image_size=32, patch_size=8, pretrained=False)
    file = tmp_path / 'weights.pth'
    torch.save(MODELS.build(config.model).state_dict(), file)
    return Inferencer(config, file)
