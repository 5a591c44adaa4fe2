# The embedded world as GQA, on regions: `python tools/make_shapes.py --out data/shapes`. The test
# asks all questions, those that follow from others too, and tells GQA's consistency.
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
    global_batch_size=64,
    num_workers=1,
    persistent_workers=True,
    drop_last=True,
    sampler=dict(type='EpochSampler'),
    collate_fn=dict(type='xmodal.stack_regions'),
    dataset=dict(
        type='GqaDataset',
        data_root=data_root,
        ann_file='gqa/train_balanced_questions.json',
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    batch_size=100,
    num_workers=1,
    sampler=dict(type='DefaultSampler', shuffle=False, round_up=False),
    collate_fn=dict(type='xmodal.stack_regions'),
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
