# VQA on a thousand questions of VQA v2 by the vectors of pretrain_flickr8k_grid.py, which choose an
# answer from a table: a minute on two CPU cores. docs/tasks/vqa.md has the captions for it.
_base_ = [
    '../_base_/models/photographs_grid.py',
    '../_base_/datasets/vqa_coco_mini_grid.py',
    '../_base_/schedules/flickr8k_grid.py',
    '../_base_/default_runtime.py',
]

model = dict(
    _delete_=True,
    type='AlbefVectorVQA',
    data_preprocessor=_base_.model.data_preprocessor,
    backbone=dict(_base_.model.backbone, frozen=['text_encoder', 'image_proj', 'text_proj']),
    head=dict(
        type='AnswerTableHead', answer_list='data/coco_mini/vqa_v2_mini/all_answers.json',
        loss='bce',
    ),
)
load_from = 'work_dirs/pretrain_flickr8k_grid/epoch_3.pth'

load_regions = dict(type='LoadRegions', store='data/coco_mini/lite0_lite2')
train_dataloader = dict(
    dataset=dict(pipeline=[load_regions, _base_.train_dataloader.dataset.pipeline[1]])
)
test_dataloader = dict(
    dataset=dict(pipeline=[load_regions, _base_.test_dataloader.dataset.pipeline[1]])
)
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=10)
optim_wrapper = dict(optimizer=dict(lr=5e-4))
find_unused_parameters = True  # adapters and fusion encoder
