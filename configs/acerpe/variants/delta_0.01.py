# Table 7: δ = 0.01, an anchor's threshold (Eq. 4) and the margin of the anchor loss (Eq. 2).
_base_ = '../pretrain_4m.py'

model = dict(
    backbone=dict(position=dict(delta=0.01)),
    heads=dict(ace=dict(margin=0.01)),
)
