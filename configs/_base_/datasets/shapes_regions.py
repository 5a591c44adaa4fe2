# The embedded world as regions with boxes, `python tools/make_shapes.py --out data/shapes`: 8 of an
# image, 259 wide. Every caption is a training sample. Test is retrieval on held-out scenes.
_base_ = '../loaders.py'

pipeline = [
    dict(type='LoadRegions', store='data/shapes/regions/store'),
    dict(type='PackRegionText'),
]
train_dataloader = dict(
    _base_.small_region_loaders.train,
    global_batch_size=64,
    dataset=dict(
        type='AlbefJsonDataset', data_root='data/shapes/', ann_file='albef/train.json',
        captions='each', pipeline=pipeline,
    ),
)
test_dataloader = dict(
    _base_.small_region_loaders.test,
    batch_size=100,
    dataset=dict(
        type='AlbefJsonDataset', data_root='data/shapes/', ann_file='albef/test.json',
        pipeline=pipeline, test_mode=True,
    ),
)
test_evaluator = dict(type='RetrievalMetric')
test_cfg = dict(type='RetrievalLoop', scorer=dict(type='ITMReranker', topk=10, add_similarity=True))
