# Table 9: values alone.
_base_ = '../pretrain_4m.py'

model = dict(backbone=dict(position=dict(query=False, key=False)))
