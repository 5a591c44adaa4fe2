# The embedded world as NLVR2, on regions: `python tools/make_shapes.py --out data/shapes`.
data_root = 'data/shapes/'
pipeline = [
    dict(type='LoadRegions', store='data/shapes/regions/store'),
    dict(type='PackRegionText', fields=('label', 'identifier', 'group')),
]
train_dataloader = dict(
    global_batch_size=64,
    num_workers=1,
    persistent_workers=True,
    drop_last=True,
    sampler=dict(type='EpochSampler'),
    collate_fn=dict(type='xmodal.stack_regions'),
    dataset=dict(
        type='Nlvr2Dataset',
        data_root=data_root,
        ann_file='nlvr2/train.json',
        image_path='{url}',
        pipeline=pipeline,
    ),
)
val_dataloader = dict(
    batch_size=100,
    num_workers=1,
    sampler=dict(type='DefaultSampler', shuffle=False, round_up=False),
    collate_fn=dict(type='xmodal.stack_regions'),
    dataset=dict(
        type='Nlvr2Dataset',
        data_root=data_root,
        ann_file='nlvr2/dev.json',
        image_path='{url}',
        pipeline=pipeline,
        test_mode=True,
    ),
)
test_dataloader = dict(
    val_dataloader, dataset=dict(val_dataloader['dataset'], ann_file='nlvr2/test1.json')
)
val_evaluator = dict(type='ReasoningMetric')
test_evaluator = val_evaluator
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
