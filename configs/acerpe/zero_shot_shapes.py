# Zero-shot classification of single objects of the embedded world, by the contrastive towers of
# pretrain_shapes.py: `python tools/test.py configs/acerpe/zero_shot_shapes.py
# work_dirs/pretrain_shapes/epoch_9.pth`
_base_ = ['./pretrain_shapes.py', '../_base_/datasets/zero_shot_shapes.py']

test_cfg = dict(_delete_=True, **_base_.zero_shot)
