# The embedded world as NLVR2: `python tools/make_shapes.py --out data/shapes`. No flip: statements
# say left and right.
_base_ = '../loaders.py'

data_root = 'data/shapes/'
pipeline = [
    dict(type='ForEachImage', transforms=[dict(type='LoadImage')]),
    dict(type='PackImageText', fields=('label', 'identifier', 'group')),
]

train_dataloader = dict(
    _base_.small_image_loaders.train,
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
    _base_.small_image_loaders.test,
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
