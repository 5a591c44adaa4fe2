# NLVR2 on LXMERT's region features (docs/regions.md), from NLVR2's own files:
#
#   data/nlvr2/{train,dev,test1}.json
#   data/regions/nlvr2      a store of train, valid and test; an image is 'train-10171-0-img0'
#
# 36 regions an image, two images a statement.
_base_ = '../loaders.py'

data_root = 'data/'
pipeline = [
    dict(type='LoadRegions', store='data/regions/nlvr2'),
    dict(type='PackRegionText', fields=('label', 'identifier', 'group')),
]
train_dataloader = dict(
    _base_.region_loaders.train,
    global_batch_size=32,
    dataset=dict(
        type='Nlvr2Dataset',
        data_root=data_root,
        ann_file='nlvr2/train.json',
        max_words=None,
        pipeline=pipeline,
    ),
)
val_dataloader = dict(
    _base_.region_loaders.test,
    batch_size=128,
    dataset=dict(
        type='Nlvr2Dataset',
        data_root=data_root,
        ann_file='nlvr2/dev.json',
        max_words=None,
        pipeline=pipeline,
        test_mode=True,
    ),
)
test_dataloader = dict(
    val_dataloader,
    dataset=dict(val_dataloader['dataset'], ann_file='nlvr2/test1.json'),  # test-P
)
val_evaluator = dict(type='ReasoningMetric')
test_evaluator = val_evaluator
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
