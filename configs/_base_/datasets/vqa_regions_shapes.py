# The embedded world's questions as VQA v2, on regions: `python tools/make_shapes.py --out
# data/shapes`. It learns from the scores of answers, as LXMERT does; predictions are compared with
# people's answers, by VQA's own accuracy.
_base_ = '../loaders.py'

data_root = 'data/shapes/'
load_regions = dict(type='LoadRegions', store='data/shapes/regions/store')
train_pipeline = [
    load_regions,
    dict(type='PackRegionText', fields=('answers', 'answer_weights')),
]
test_pipeline = [
    load_regions,
    dict(type='PackRegionText', fields=('question_id', 'human_answers', 'answer_type')),
]
train_dataloader = dict(
    _base_.small_region_loaders.train,
    global_batch_size=64,
    dataset=dict(
        type='VqaDataset',
        data_root=data_root,
        ann_file='vqa/questions_train.json',
        answer_file='vqa/annotations_train.json',
        image_info='coco/captions_train.json',
        weights='score',
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    _base_.small_region_loaders.test,
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
