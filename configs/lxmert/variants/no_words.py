# Without the masked cross-modality language model. No row of the paper.
_base_ = '../pretrain.py'

model = dict(heads=dict(mlm=None))
