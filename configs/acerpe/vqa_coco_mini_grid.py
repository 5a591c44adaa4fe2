# VQA on a thousand questions of VQA v2, and on those that captions answer, by the vectors of
# pretrain_flickr8k_grid.py, which choose an answer from a table: minutes on two CPU cores.
# docs/tasks/vqa.md has the captions for it.
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
        linear=True,
    ),
)
load_from = 'work_dirs/pretrain_flickr8k_grid/epoch_3.pth'

stores = ['data/flickr8k/lite0_lite2', 'data/coco_mini/lite0_lite2']
train_pipeline, test_pipeline = (
    [dict(type='LoadRegions', store=stores), loader.dataset.pipeline[1]]
    for loader in (_base_.train_dataloader, _base_.test_dataloader)
)
train_dataloader = dict(
    global_batch_size=128,
    dataset=dict(
        _delete_=True,
        type='WeightedConcatDataset',
        datasets=[
            dict(_base_.train_dataloader.dataset, pipeline=train_pipeline),
            dict(
                type='LxmertPretrainDataset',
                data_root='data/',
                ann_file='coco_mini/caption_questions.json',
                pipeline=train_pipeline,
            ),
        ],
        weights=[1, 0.04],  # as many of either
    ),
)
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=18)
optim_wrapper = dict(optimizer=dict(lr=2e-3))
find_unused_parameters = True  # adapters and fusion encoder
