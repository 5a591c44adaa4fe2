# Tables 1 and 2, "RPE": relative biases, each modality its own.
_base_ = '../pretrain_4m.py'

model = dict(
    backbone=dict(position=dict(_delete_=True, type='rpe')),
    heads=dict(ace=None, itc=dict(type='ITCHead')),  # ALBEF's ITC in the place of L_ace
)
