# ACE-RPE fine-tuned for visual reasoning on NLVR2 (Sec. 4.2), by ALBEF's recipe: the paper gives
# no recipe. It starts from an epoch of text assignment (nlvr2_ta.py).
#   tools/dist_train.sh configs/acerpe/nlvr2.py 8
_base_ = [
    '../_base_/models/acerpe_base.py',
    '../_base_/datasets/nlvr2.py',
    '../_base_/schedules/finetune_albef_tasks.py',
    '../_base_/momentum_distillation.py',
    '../_base_/default_runtime.py',
]

model = dict(
    _delete_=True,
    type='AlbefNLVR',
    data_preprocessor=dict(_base_.model.data_preprocessor, max_length=64),  # 30 words are not cut
    backbone=dict(
        _base_.model.backbone,
        image_encoder=dict(_base_.model.backbone.image_encoder, image_size=_base_.image_size),
    ),
    head=dict(type='ClassificationHead', num_classes=2),
    momentum=0.995,  # m
)
load_from = 'work_dirs/nlvr2_ta/epoch_1.pth'

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=10)
train_dataloader = dict(global_batch_size=128)  # 8 GPUs x 16
custom_hooks = [_base_.momentum_distillation]
default_hooks = dict(checkpoint=dict(save_best='accuracy', rule='greater'))
