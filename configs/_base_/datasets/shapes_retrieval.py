# Retrieval on the embedded world, `python tools/make_shapes.py --out data/shapes`, in Karpathy's
# layout as COCO and Flickr30K; every caption is a training sample of its own. No flip: captions say
# left and right.
data_root = 'data/shapes/'
ann_file = 'karpathy/dataset_shapes.json'
pipeline = [dict(type='LoadImage'), dict(type='PackImageText')]
train_dataloader = dict(
    global_batch_size=64,
    num_workers=1,
    persistent_workers=True,
    drop_last=True,
    sampler=dict(type='EpochSampler'),
    collate_fn=dict(type='xmodal.stack_images'),
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
    batch_size=100,
    num_workers=1,
    sampler=dict(type='DefaultSampler', shuffle=False, round_up=False),
    collate_fn=dict(type='xmodal.stack_images'),
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
