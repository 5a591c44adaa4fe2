"""The paper's contrast on grid features: drawn scenes, random encoders."""

import torch
from runs import train


def test_a_teacher_fills_the_queue_and_gives_soft_targets(grid_config):
    config = grid_config('configs/acerpe/pretrain_flickr8k_queue.py')
    config.model.backbone.fusion.update(embed_dims=32, num_heads=2, feedforward_dims=32)
    config.model.queue_length = 20
    runner = train(config)
    model = runner.model
    keys = model.queue.keys()
    assert not keys.is_empty.any()
    assert not keys.image_embeddings[0].equal(keys.image_embeddings[1])
    assert 0 < model.distillation_weight <= 0.4
    online, teacher = (
        x.image_proj.linear.weight for x in (model.backbone, model.teacher.module['backbone'])
    )
    assert not online.equal(teacher)
    assert torch.cosine_similarity(online.flatten(), teacher.flatten(), 0) > 0.99
