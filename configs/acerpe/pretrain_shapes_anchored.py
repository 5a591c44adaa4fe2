# The embedded world with what is shown to help there (docs/acerpe_places.md, "Words that find
# places"): anchors that find what words mean, a position that tells words where they are, and
# directions in the objectives: predicted by MLM, turned around in negatives of ITM. None of it is
# in the paper. It starts from contrast_shapes_anchored.py.
_base_ = './pretrain_shapes.py'

groups = 4
opposites = [('left', 'right'), ('above', 'below'), ('over', 'under')]
directions = ['left', 'right', 'above', 'below', 'over', 'under']
model = dict(
    backbone=dict(position=dict(_delete_=True, type='AnchorAbsolutePosition', groups=groups)),
    heads=dict(
        anchors=dict(type='AnchorContrastHead', groups=groups),
        ace=None,
        itm=dict(_delete_=True, type='WordSwapITMHead', opposites=opposites, hardness=0.1),
        mlm=dict(focus=directions),
        mim=None,
    ),
)
load_from = 'work_dirs/contrast_shapes_anchored/epoch_6.pth'
custom_hooks = []
train_cfg = dict(max_epochs=8)
# The patches stay where words find them: at the whole rate fusion pulls them away from the words
# before it has learned to use them.
optim_wrapper = dict(paramwise_cfg=dict(custom_keys={'image_encoder': dict(lr_mult=0.01)}))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.02, by_epoch=False, end=50),
    dict(
        type='CosineAnnealingLR',
        eta_min=1e-5,
        begin=4,
        by_epoch=True,
        convert_to_iter_based=True,
    ),
]
