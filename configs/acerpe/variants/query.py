# Table 9: queries alone.
_base_ = '../pretrain_4m.py'

model = dict(network=dict(position=dict(key=False, value=False)))
