# Flickr8k, from your own copy (docs/data.md). Its published files in data/flickr8k, then
# `python tools/dataset_converters/flickr8k.py data/flickr8k`. Retrieval on its dev part.
_base_ = '../loaders.py'

data_root = 'data/'
image_size = 112
train_pipeline = [
    dict(type='LoadImage'),
    dict(type='AlbefAugment', size=image_size, scale=(0.5, 1.0), num_ops=1),
    dict(type='RandomFlip'),  # not where the caption says left or right
    dict(type='PackImageText'),
]
test_pipeline = [
    dict(type='LoadImage'),
    dict(type='ResizeImage', size=image_size),
    dict(type='PackImageText'),
]
train_dataloader = dict(
    _base_.small_image_loaders.train,
    global_batch_size=64,
    dataset=dict(
        type='AlbefJsonDataset',
        data_root=data_root,
        ann_file=['flickr8k/albef/train.json'],
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    _base_.small_image_loaders.test,
    batch_size=64,
    dataset=dict(
        type='AlbefJsonDataset',
        data_root=data_root,
        ann_file='flickr8k/albef/dev.json',
        pipeline=test_pipeline,
        test_mode=True,
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='RetrievalMetric')
test_evaluator = val_evaluator
val_cfg = dict(type='RetrievalLoop', scorer=dict(type='ITMReranker', topk=0))
test_cfg = dict(type='RetrievalLoop', scorer=dict(type='ITMReranker', topk=10, add_similarity=True))
