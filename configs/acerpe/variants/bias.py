# Table 8, "Bias": a scalar a pair on the logits (Eq. 9).
_base_ = '../pretrain_4m.py'

model = dict(network=dict(position=dict(mode='bias')))
