# Table 7: G = 16.
_base_ = '../pretrain_4m.py'

model = dict(backbone=dict(position=dict(groups=16)))
