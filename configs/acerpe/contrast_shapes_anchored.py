# The first stage of pretrain_shapes_anchored.py: the encoders alone, by ITC and by the contrast of
# words and patches that makes anchors. Minutes on one CPU core, after encoder_shapes.py.
_base_ = './pretrain_shapes.py'

groups = 4
model = dict(
    backbone=dict(position=dict(_delete_=True, type='AnchorAbsolutePosition', groups=groups)),
    heads=dict(
        anchors=dict(type='AnchorContrastHead', groups=groups), ace=None, itm=None, mlm=None,
        mim=None,
    ),
)
custom_hooks = []
default_hooks = dict(  # in the log: whether the anchors find what words name
    anchor_auc=dict(type='AnchorAucHook', instances='data/shapes/coco/instances_val.json')
)
train_cfg = dict(max_epochs=6)
