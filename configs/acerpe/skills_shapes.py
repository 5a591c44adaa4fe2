# What a model of the embedded world can tell apart, by vectors and by fusion: `python tools/test.py
# configs/acerpe/skills_shapes.py acerpe-shapes`, or a checkpoint of pretrain_shapes.py
_base_ = ['./pretrain_shapes.py', '../_base_/datasets/skills_shapes.py']

test_cfg = dict(_delete_=True, **_base_.skills)
