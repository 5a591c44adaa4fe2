# VQA on the embedded world, fine-tuned from pretrain_shapes.py: 2,900 iterations of 0.6 s on one
# CPU core.
_base_ = [
    '../_base_/models/acerpe_shapes.py',
    '../_base_/datasets/vqa_shapes.py',
    '../_base_/default_runtime.py',
]

model = dict(
    _delete_=True,
    type='AnswerGenerator',
    data_preprocessor=_base_.model.data_preprocessor,
    network=_base_.model.network,
    momentum=None,  # a run of minutes is over before a teacher knows more than the model
    answer_list='data/shapes/vqa/answer_list.json',
    candidates=128,  # of 161
)
load_from = 'work_dirs/pretrain_shapes/epoch_11.pth'

train_cfg = dict(type='ExactEpochTrainLoop', max_epochs=5)
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
