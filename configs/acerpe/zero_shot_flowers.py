# Zero-shot classification of photographs of flowers in five classes, by the contrastive towers of
# pretrain_flickr8k.py: `python tools/test.py configs/acerpe/zero_shot_flowers.py
# work_dirs/pretrain_flickr8k/epoch_12.pth`
_base_ = ['./pretrain_flickr8k.py', '../_base_/datasets/zero_shot_flowers.py']

test_cfg = dict(_delete_=True, **_base_.zero_shot)
