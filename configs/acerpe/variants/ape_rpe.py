# Tables 1 and 2, "APE + RPE": absolute and relative, each modality its own.
_base_ = '../pretrain_4m.py'

model = dict(
    backbone=dict(position=dict(_delete_=True, type='ape+rpe')),
    heads=dict(ace=None, itc=dict(type='ITCHead')),  # ALBEF's ITC in the place of L_ace
)
