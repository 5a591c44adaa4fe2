# Table 7: G = 8.
_base_ = '../pretrain_4m.py'

model = dict(backbone=dict(position=dict(groups=8)))
