# Table 9: queries and keys.
_base_ = '../pretrain_4m.py'

model = dict(network=dict(position=dict(value=False)))
