# Tables 1 and 2, "Uniform": one distance for all words and patches, no anchors.
_base_ = '../pretrain_4m.py'

model = dict(
    backbone=dict(position=dict(type='uniform')),
    heads=dict(ace=None, itc=dict(type='ITCHead')),  # ALBEF's ITC in the place of L_ace
)
