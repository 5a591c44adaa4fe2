# Visual reasoning over two images on the embedded world, fine-tuned from pretrain_shapes.py:
# minutes on two CPU cores.
_base_ = [
    '../_base_/models/acerpe_shapes.py',
    '../_base_/datasets/nlvr2_shapes.py',
    '../_base_/schedules/finetune_shapes.py',
    '../_base_/default_runtime.py',
]

model = dict(
    _delete_=True,
    type='AlbefNLVR',
    data_preprocessor=_base_.model.data_preprocessor,
    backbone=_base_.model.backbone,
    head=dict(type='ClassificationHead', num_classes=2),
    momentum=None,  # a run of minutes is over before a teacher knows more than the model
)
load_from = 'work_dirs/pretrain_shapes/epoch_9.pth'

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=5)
default_hooks = dict(checkpoint=dict(save_best='accuracy', rule='greater'))
find_unused_parameters = True  # the contrastive projections
