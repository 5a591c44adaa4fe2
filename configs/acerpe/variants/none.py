# Tables 1 and 2, "None": no position in the fusion encoder.
_base_ = '../pretrain_4m.py'

model = dict(
    backbone=dict(position=dict(_delete_=True, type='none')),
    heads=dict(ace=None, itc=dict(type='ITCHead')),  # ALBEF's ITC in the place of L_ace
)
