# The embedded world: `python tools/make_shapes.py --out data/shapes`. No flip: captions say left
# and right. Validation and test are retrieval on held-out scenes.
_base_ = '../loaders.py'

data_root = 'data/shapes/'
test_pipeline = [dict(type='LoadImage'), dict(type='PackImageText')]

train_dataloader = dict(
    _base_.small_image_loaders.train,
    global_batch_size=64,
    dataset=dict(
        type='AlbefJsonDataset',
        data_root=data_root,
        ann_file='albef/train.json',
        pipeline=[dict(type='LoadImage'), dict(type='PackImageText')],
    ),
)
val_dataloader = dict(
    _base_.small_image_loaders.test,
    batch_size=100,
    dataset=dict(
        type='AlbefJsonDataset',
        data_root=data_root,
        ann_file='albef/val.json',
        pipeline=test_pipeline,
        test_mode=True,
    ),
)
test_dataloader = dict(
    val_dataloader, dataset=dict(val_dataloader['dataset'], ann_file='albef/test.json')
)
val_evaluator = dict(type='RetrievalMetric')
test_evaluator = val_evaluator
val_cfg = dict(type='RetrievalLoop', scorer=dict(type='ITMReranker', topk=0))
test_cfg = dict(type='RetrievalLoop', scorer=dict(type='ITMReranker', topk=10, add_similarity=True))
