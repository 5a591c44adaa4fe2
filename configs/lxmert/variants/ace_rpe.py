# ACE-RPE in LXMERT, with the values of its paper.
_base_ = '../pretrain.py'

model = dict(backbone=dict(position=dict(type='ace_rpe')))
