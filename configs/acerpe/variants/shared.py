# Table 6, "Shared": one W for all fusion layers.
_base_ = '../pretrain_4m.py'

model = dict(backbone=dict(position=dict(shared=True)))
