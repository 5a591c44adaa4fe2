# Table 9: keys alone.
_base_ = '../pretrain_4m.py'

model = dict(network=dict(position=dict(query=False, value=False)))
