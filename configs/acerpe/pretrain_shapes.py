# ACE-RPE on the embedded world: what `make quickstart` runs, minutes on two CPU cores. As in the
# paper the image encoder has learned to classify before: python tools/train.py
# configs/acerpe/encoder_shapes.py
_base_ = [
    '../_base_/models/acerpe_shapes.py',
    '../_base_/datasets/shapes_pretrain.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(image_encoder=dict(pretrained='work_dirs/encoder_shapes/epoch_6.pth'))
)
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=9, val_interval=3)
# The text encoder starts from random weights: contrast comes first. With two pretrained encoders
# all heads begin together.
custom_hooks = [dict(type='DelayedHeadsHook', epochs=dict(ace=6, itm=6, mlm=6, mim=6))]
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=1e-3, betas=(0.9, 0.98), weight_decay=0.02),
    clip_grad=dict(max_norm=5.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.02, by_epoch=False, end=50),
    dict(
        type='CosineAnnealingLR', eta_min=1e-5, begin=3, by_epoch=True,
        convert_to_iter_based=True,
    ),
]
find_unused_parameters = True  # the heads that wait
