# Table 7: λ = 3, in both terms of the anchor loss (Eqs. 1 and 2).
_base_ = '../pretrain_4m.py'

model = dict(heads=dict(ace=dict(scale=3.0, token_scale=3.0)))
