# Tables 1 and 2, "ACE-RPE": the position without the anchor loss.
_base_ = '../pretrain_4m.py'

model = dict(
    heads=dict(ace=None, itc=dict(type='ITCHead')),  # ALBEF's ITC in the place of L_ace
)
