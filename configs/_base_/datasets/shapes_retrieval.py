# Retrieval on the embedded world, `python tools/make_shapes.py --out data/shapes`, in Karpathy's
# layout as COCO and Flickr30K; every caption is a separate training sample. No flip: captions say
# left and right.
_base_ = '../loaders.py'

data_root = 'data/shapes/'
ann_file = 'karpathy/dataset_shapes.json'
pipeline = [dict(type='LoadImage'), dict(type='PackImageText')]
train_dataloader = dict(
    _base_.small_image_loaders.train,
    global_batch_size=64,
    dataset=dict(
        type='KarpathyDataset',
        data_root=data_root,
        ann_file=ann_file,
        split='train',
        captions='each',
        pipeline=pipeline,
    ),
)
val_dataloader = dict(
    _base_.small_image_loaders.test,
    batch_size=100,
    dataset=dict(
        type='KarpathyDataset',
        data_root=data_root,
        ann_file=ann_file,
        split='val',
        pipeline=pipeline,
        test_mode=True,
    ),
)
test_dataloader = dict(val_dataloader, dataset=dict(val_dataloader['dataset'], split='test'))
val_evaluator = dict(type='RetrievalMetric')
test_evaluator = val_evaluator
val_cfg = dict(type='RetrievalLoop', scorer=dict(type='ITMReranker', topk=10, add_similarity=True))
test_cfg = val_cfg
