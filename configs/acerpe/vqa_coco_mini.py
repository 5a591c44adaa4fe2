# VQA on a thousand questions of VQA v2, fine-tuned from pretrain_flickr8k.py: minutes on two CPU
# cores.
_base_ = [
    '../_base_/models/acerpe_photographs.py',
    '../_base_/datasets/vqa_coco_mini.py',
    '../_base_/default_runtime.py',
]

model = dict(
    _delete_=True,
    type='AnswerGenerator',
    data_preprocessor=_base_.model.data_preprocessor,
    network=_base_.model.network,
    momentum=None,  # a run of minutes is over before a teacher knows more than the model
    answer_list='data/coco_mini/vqa_v2_mini/answer_list.json',
    candidates=128,  # all of the list
)
load_from = 'work_dirs/pretrain_flickr8k/epoch_12.pth'

train_cfg = dict(type='ExactEpochTrainLoop', max_epochs=6)
optim_wrapper = dict(
    type='AnyDeviceOptimWrapper',
    constructor='NoDecayConstructor',
    # On a CPU an unfused AdamW takes a quarter of a step of this size.
    optimizer=dict(type='AdamW', lr=1e-4, weight_decay=0.05, fused=True),
    clip_grad=dict(max_norm=5.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.02, by_epoch=False, end=50),
    dict(type='CosineAnnealingLR', eta_min=1e-6, by_epoch=True, convert_to_iter_based=True),
]
find_unused_parameters = True  # the contrastive projections
