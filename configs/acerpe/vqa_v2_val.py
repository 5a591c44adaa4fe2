# As vqa_v2.py, trained without VQA's val and evaluated on it, which needs no test server.
_base_ = './vqa_v2.py'

val_questions = 'vqa/v2_OpenEnded_mscoco_val2014_questions.json'
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
            # Half of Visual Genome's images are COCO's: those of the test are left out.
            dict(_base_.visual_genome, exclude=val_questions),
        ]
    )
)
test_dataloader = dict(
    dataset=dict(
        ann_file=val_questions,
        answer_file='vqa/v2_mscoco_val2014_annotations.json',
    )
)
