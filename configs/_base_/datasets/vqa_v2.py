# VQA v2 with Visual Genome's questions (docs/tasks/vqa.md):
#
#   data/vqa/v2_OpenEnded_mscoco_{train2014,val2014,test2015}_questions.json
#   data/vqa/v2_mscoco_{train2014,val2014}_annotations.json
#   data/coco/{train2014,val2014,test2015}/COCO_*.jpg
#   data/vg/{question_answers,image_data}.json
#   data/pretrain/vg/{VG_100K,VG_100K_2}/*.jpg
#
# Trained on train and val, as all that submit to the test server; 384 pixels, as ALBEF fine-tunes.
_base_ = '../loaders.py'

data_root = 'data/'
image_size = 384
train_pipeline = [
    dict(type='LoadImage'),
    dict(type='AlbefAugment', size=image_size, scale=(0.5, 1.0)),
    dict(type='RandomFlip'),  # not where the question or an answer says left or right
    dict(type='PackImageText', fields=('answers', 'answer_weights')),
]
test_pipeline = [
    dict(type='LoadImage'),
    dict(type='ResizeImage', size=image_size),
    dict(type='PackImageText', fields=('question_id', 'human_answers', 'answer_type')),
]
visual_genome = dict(
    type='VisualGenomeQuestionDataset',
    data_root=data_root,
    data_prefix=dict(image='pretrain/vg'),
    ann_file='vg/question_answers.json',
    image_data='vg/image_data.json',
    pipeline=train_pipeline,
)
train_dataloader = dict(
    _base_.image_loaders.train,
    global_batch_size=256,
    dataset=dict(
        type='WeightedConcatDataset',
        datasets=[
            dict(
                type='VqaDataset',
                data_root=data_root,
                data_prefix=dict(image='coco'),
                ann_file=[
                    'vqa/v2_OpenEnded_mscoco_train2014_questions.json',
                    'vqa/v2_OpenEnded_mscoco_val2014_questions.json',
                ],
                answer_file=[
                    'vqa/v2_mscoco_train2014_annotations.json',
                    'vqa/v2_mscoco_val2014_annotations.json',
                ],
                pipeline=train_pipeline,
            ),
            visual_genome,
        ],
    ),
)
test_dataloader = dict(
    _base_.image_loaders.test,
    batch_size=16,
    dataset=dict(
        type='VqaDataset',
        data_root=data_root,
        data_prefix=dict(image='coco'),
        ann_file='vqa/v2_OpenEnded_mscoco_test2015_questions.json',
        pipeline=test_pipeline,
        test_mode=True,
    ),
)
test_evaluator = dict(type='VqaMetric')
test_cfg = dict(type='TestLoop')
