# Table 9: queries alone.
_base_ = '../pretrain_4m.py'

model = dict(backbone=dict(position=dict(key=False, value=False)))
