# Visual entailment on the embedded world, fine-tuned from pretrain_shapes.py: minutes on two CPU
# cores.
_base_ = [
    '../_base_/models/acerpe_shapes.py',
    '../_base_/datasets/snli_ve_shapes.py',
    '../_base_/default_runtime.py',
]

model = dict(
    _delete_=True,
    type='CrossModalClassifier',
    data_preprocessor=_base_.model.data_preprocessor,
    network=_base_.model.network,
    head=dict(type='ClassificationHead', num_classes=3),
    momentum=None,  # a run of minutes is over before a teacher knows more than the model
)
load_from = 'work_dirs/pretrain_shapes/epoch_11.pth'

train_cfg = dict(type='ExactEpochTrainLoop', max_epochs=5)
default_hooks = dict(checkpoint=dict(save_best='accuracy', rule='greater'))
optim_wrapper = dict(
    type='AnyDeviceOptimWrapper',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=5e-4, weight_decay=0.02),
    clip_grad=dict(max_norm=5.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.02, by_epoch=False, end=50),
    dict(type='CosineAnnealingLR', eta_min=1e-6, by_epoch=True, convert_to_iter_based=True),
]
find_unused_parameters = True  # the contrastive projections
