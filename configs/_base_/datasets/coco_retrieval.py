# Retrieval on COCO with Karpathy's splits (docs/data.md):
#
#   data/karpathy/dataset_coco.json
#   data/coco/{train2014,val2014}/COCO_*.jpg
#
# 384 pixels, as ALBEF fine-tunes; every caption is a separate training sample.
_base_ = '../loaders.py'

data_root = 'data/'
data_prefix = dict(image='coco')
ann_file = 'karpathy/dataset_coco.json'
image_size = 384
train_pipeline = [
    dict(type='LoadImage'),
    dict(type='AlbefAugment', size=image_size, scale=(0.5, 1.0)),
    dict(type='RandomFlip'),  # not where the caption says left or right
    dict(type='PackImageText'),
]
test_pipeline = [
    dict(type='LoadImage'),
    dict(type='ResizeImage', size=image_size),
    dict(type='PackImageText'),
]
train_dataloader = dict(
    _base_.image_loaders.train,
    global_batch_size=256,
    dataset=dict(
        type='KarpathyDataset',
        data_root=data_root,
        data_prefix=data_prefix,
        ann_file=ann_file,
        split=['train', 'restval'],
        captions='each',
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    _base_.image_loaders.test,
    batch_size=64,
    dataset=dict(
        type='KarpathyDataset',
        data_root=data_root,
        data_prefix=data_prefix,
        ann_file=ann_file,
        split='val',
        pipeline=test_pipeline,
        test_mode=True,
    ),
)
test_dataloader = dict(val_dataloader, dataset=dict(val_dataloader['dataset'], split='test'))
val_evaluator = dict(type='RetrievalMetric')
test_evaluator = val_evaluator
val_cfg = dict(type='RetrievalLoop', scorer=dict(type='ITMReranker', topk=256))  # as ALBEF
test_cfg = val_cfg
