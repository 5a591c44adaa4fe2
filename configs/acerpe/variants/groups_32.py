# Table 7: G = 32.
_base_ = '../pretrain_4m.py'

model = dict(backbone=dict(position=dict(groups=32)))
