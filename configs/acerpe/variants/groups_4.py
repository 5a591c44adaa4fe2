# Table 7: G = 4.
_base_ = '../pretrain_4m.py'

model = dict(backbone=dict(position=dict(groups=4)))
