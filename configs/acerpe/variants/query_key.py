# Table 9: queries and keys.
_base_ = '../pretrain_4m.py'

model = dict(backbone=dict(position=dict(value=False)))
