# What pretrain_shapes_anchored.py can tell apart, by vectors and by fusion.
_base_ = ['./pretrain_shapes_anchored.py', '../_base_/datasets/skills_shapes.py']

test_cfg = dict(_delete_=True, **_base_.skills)
