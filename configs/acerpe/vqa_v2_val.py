# As vqa_v2.py, trained without VQA's val and evaluated on it, which needs no test server.
_base_ = './vqa_v2.py'

train_dataloader = dict(
    dataset=dict(
        datasets=[
            dict(
                type='VqaDataset',
                data_root=_base_.data_root,
                data_prefix=dict(image='coco'),
                ann_file='vqa/v2_OpenEnded_mscoco_train2014_questions.json',
                answer_file='vqa/v2_mscoco_train2014_annotations.json',
                pipeline=_base_.train_pipeline,
            ),
            _base_.visual_genome,
        ]
    )
)
test_dataloader = dict(
    dataset=dict(
        ann_file='vqa/v2_OpenEnded_mscoco_val2014_questions.json',
        answer_file='vqa/v2_mscoco_val2014_annotations.json',
    )
)
