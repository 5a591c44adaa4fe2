# VQA on a thousand questions of VQA v2, fine-tuned from pretrain_flickr8k.py: minutes on two CPU
# cores.
_base_ = [
    '../_base_/models/acerpe_photographs.py',
    '../_base_/datasets/vqa_coco_mini.py',
    '../_base_/schedules/finetune_photographs.py',
    '../_base_/default_runtime.py',
]

model = dict(
    _delete_=True,
    type='AlbefVQA',
    data_preprocessor=_base_.model.data_preprocessor,
    backbone=_base_.model.backbone,
    momentum=None,  # a run of minutes is over before a teacher knows more than the model
    answer_list='data/coco_mini/vqa_v2_mini/answer_list.json',
    candidates=128,  # all of the list
)
load_from = 'work_dirs/pretrain_flickr8k/epoch_12.pth'

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=6)
find_unused_parameters = True  # the contrastive projections
