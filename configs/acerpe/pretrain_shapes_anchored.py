# pretrain_shapes.py with anchors that find what words mean: a sixth head, from the first step on.
_base_ = './pretrain_shapes.py'

model = dict(heads=dict(anchors=dict(type='AnchorContrastHead')))
