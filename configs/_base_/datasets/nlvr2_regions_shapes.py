# The embedded world as NLVR2, on regions: `python tools/make_shapes.py --out data/shapes`.
_base_ = '../loaders.py'

data_root = 'data/shapes/'
pipeline = [
    dict(type='LoadRegions', store='data/shapes/regions/store'),
    dict(type='PackRegionText', fields=('label', 'identifier', 'group')),
]
train_dataloader = dict(
    _base_.small_region_loaders.train,
    global_batch_size=64,
    dataset=dict(
        type='Nlvr2Dataset',
        data_root=data_root,
        ann_file='nlvr2/train.json',
        image_path='{url}',
        pipeline=pipeline,
    ),
)
val_dataloader = dict(
    _base_.small_region_loaders.test,
    batch_size=100,
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
