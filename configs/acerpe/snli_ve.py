# ACE-RPE fine-tuned for visual entailment on SNLI-VE (Sec. 4.2), by ALBEF's recipe: the paper gives
# no recipe.
#   tools/dist_train.sh configs/acerpe/snli_ve.py 8 \
#       --cfg-options load_from=work_dirs/pretrain_4m/epoch_30.pth
_base_ = [
    '../_base_/models/acerpe_base.py',
    '../_base_/datasets/snli_ve.py',
    '../_base_/schedules/finetune_albef_tasks.py',
    '../_base_/momentum_distillation.py',
    '../_base_/default_runtime.py',
]

model = dict(
    _delete_=True,
    type='AlbefClassifier',
    data_preprocessor=dict(_base_.model.data_preprocessor, max_length=64),  # 30 words are not cut
    backbone=dict(
        _base_.model.backbone,
        image_encoder=dict(_base_.model.backbone.image_encoder, image_size=_base_.image_size),
    ),
    head=dict(type='ClassificationHead', num_classes=3),
    momentum=0.995,  # m
)
load_from = 'work_dirs/pretrain_4m/epoch_30.pth'

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=5)
train_dataloader = dict(global_batch_size=256)  # 8 GPUs x 32
custom_hooks = [dict(_base_.momentum_distillation, ramp_epochs=0)]  # no ramp here
default_hooks = dict(checkpoint=dict(save_best='accuracy', rule='greater'))
