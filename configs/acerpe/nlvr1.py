# Visual reasoning on NLVR, each box a separate image, fine-tuned from pretrain_flickr8k.py:
# minutes on two CPU cores. Trained on `hidden`, tested on `dev` (_base_/datasets/nlvr1.py).
_base_ = [
    '../_base_/models/acerpe_photographs.py',
    '../_base_/datasets/nlvr1.py',
    '../_base_/schedules/finetune_photographs.py',
    '../_base_/default_runtime.py',
]

model = dict(
    _delete_=True,
    type='AlbefNLVR',
    data_preprocessor=dict(_base_.model.data_preprocessor, max_length=40),  # 30 words are not cut
    backbone=dict(
        _base_.model.backbone,
        image_encoder=dict(_base_.model.backbone.image_encoder, image_size=_base_.image_size),
    ),
    head=dict(type='ClassificationHead', num_classes=2),
    momentum=None,  # a run of minutes is over before a teacher knows more than the model
)
load_from = 'work_dirs/pretrain_flickr8k/epoch_12.pth'

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=1)
find_unused_parameters = True  # the contrastive projections
