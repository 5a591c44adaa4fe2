# Table 9: keys alone.
_base_ = '../pretrain_4m.py'

model = dict(backbone=dict(position=dict(query=False, value=False)))
