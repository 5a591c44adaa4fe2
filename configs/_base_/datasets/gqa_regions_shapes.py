# The embedded world as GQA, on regions: `python tools/make_shapes.py --out data/shapes`. The test
# asks all questions, also those that follow from others, and measures GQA's consistency.
_base_ = '../loaders.py'

data_root = 'data/shapes/'
load_regions = dict(type='LoadRegions', store='data/shapes/regions/store')
train_pipeline = [
    load_regions,
    dict(type='PackRegionText', fields=('answers', 'answer_weights')),
]
test_pipeline = [
    load_regions,
    dict(type='PackRegionText', fields=('question_id', 'answers', 'gqa')),
]
train_dataloader = dict(
    _base_.small_region_loaders.train,
    global_batch_size=64,
    dataset=dict(
        type='GqaDataset',
        data_root=data_root,
        ann_file='gqa/train_balanced_questions.json',
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    _base_.small_region_loaders.test,
    batch_size=100,
    dataset=dict(
        type='GqaDataset',
        data_root=data_root,
        ann_file='gqa/val_balanced_questions.json',
        pipeline=test_pipeline,
        test_mode=True,
    ),
)
test_dataloader = dict(
    val_dataloader,
    dataset=dict(val_dataloader['dataset'], ann_file='gqa/testdev_all_questions.json'),
)
val_evaluator = dict(type='GqaMetric')
test_evaluator = dict(type='GqaMetric', choices=data_root + 'gqa/testdev_choices.json')
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
