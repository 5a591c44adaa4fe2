# Without cross-modality matching: every text is its image's. No row of the paper.
_base_ = '../pretrain.py'

model = dict(heads=dict(matching=None))
