# The embedded world as VQA v2: `python tools/make_shapes.py --out data/shapes`. No flip: questions
# say left and right. Test scenes hold compositions that training lacks.
_base_ = '../loaders.py'

data_root = 'data/shapes/'
train_pipeline = [
    dict(type='LoadImage'),
    dict(type='PackImageText', fields=('answers', 'answer_weights')),
]
test_pipeline = [
    dict(type='LoadImage'),
    dict(type='PackImageText', fields=('question_id', 'human_answers', 'answer_type')),
]
train_dataloader = dict(
    _base_.small_image_loaders.train,
    global_batch_size=64,
    dataset=dict(
        type='VqaDataset',
        data_root=data_root,
        ann_file='vqa/questions_train.json',
        answer_file='vqa/annotations_train.json',
        image_info='coco/captions_train.json',
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    _base_.small_image_loaders.test,
    batch_size=100,
    dataset=dict(
        type='VqaDataset',
        data_root=data_root,
        ann_file='vqa/questions_val.json',
        answer_file='vqa/annotations_val.json',
        image_info='coco/captions_val.json',
        pipeline=test_pipeline,
        test_mode=True,
    ),
)
test_dataloader = dict(
    val_dataloader,
    dataset=dict(
        val_dataloader['dataset'],
        ann_file='vqa/questions_test.json',
        answer_file='vqa/annotations_test.json',
        image_info='coco/captions_test.json',
    ),
)
val_evaluator = dict(type='VqaMetric')
test_evaluator = val_evaluator
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
