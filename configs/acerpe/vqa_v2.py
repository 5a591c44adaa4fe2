# ACE-RPE fine-tuned for VQA v2 (Sec. 4.2), by ALBEF's recipe: the paper gives no recipe.
#   tools/dist_train.sh configs/acerpe/vqa_v2.py 8
#   tools/dist_test.sh configs/acerpe/vqa_v2.py work_dirs/vqa_v2/epoch_8.pth 8 \
#       --cfg-options test_evaluator.save_predictions=work_dirs/vqa_v2/test2015.json
_base_ = [
    '../_base_/models/acerpe_base.py',
    '../_base_/datasets/vqa_v2.py',
    '../_base_/schedules/finetune_albef_tasks.py',
    '../_base_/momentum_distillation.py',
    '../_base_/default_runtime.py',
]

model = dict(
    _delete_=True,
    type='AlbefVQA',
    data_preprocessor=_base_.model.data_preprocessor,
    backbone=dict(
        _base_.model.backbone,
        image_encoder=dict(_base_.model.backbone.image_encoder, image_size=_base_.image_size),
    ),
    momentum=0.995,  # m
    answer_list='data/vqa/answer_list.json',
    candidates=128,  # k
)
load_from = 'work_dirs/pretrain_4m/epoch_30.pth'

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=8)
train_dataloader = dict(global_batch_size=256)  # 8 GPUs x 32
custom_hooks = [_base_.momentum_distillation]
param_scheduler = [dict(_base_.param_scheduler[0], warmup_steps=4)]
