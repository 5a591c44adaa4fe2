# Table 8, "Bias": a scalar a pair on the logits (Eq. 9).
_base_ = '../pretrain_4m.py'

model = dict(backbone=dict(position=dict(mode='bias')))
