# Visual entailment on SNLI-VE (docs/tasks/entailment.md):
#
#   data/snli_ve/snli_ve_{train,dev,test}.jsonl
#   data/flickr30k/images/*.jpg
#
# 384 pixels, as ALBEF fine-tunes.
_base_ = '../loaders.py'

data_root = 'data/'
data_prefix = dict(image='flickr30k/images')
image_size = 384
fields = ('label', 'pair_id')
train_pipeline = [
    dict(type='LoadImage'),
    dict(type='AlbefAugment', size=image_size, scale=(0.5, 1.0)),
    dict(type='RandomFlip'),  # not where the hypothesis says left or right
    dict(type='PackImageText', fields=fields),
]
test_pipeline = [
    dict(type='LoadImage'),
    dict(type='ResizeImage', size=image_size),
    dict(type='PackImageText', fields=fields),
]
train_dataloader = dict(
    _base_.image_loaders.train,
    global_batch_size=256,
    dataset=dict(
        type='SnliVeDataset',
        data_root=data_root,
        data_prefix=data_prefix,
        ann_file='snli_ve/snli_ve_train.jsonl',
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    _base_.image_loaders.test,
    batch_size=64,
    dataset=dict(
        type='SnliVeDataset',
        data_root=data_root,
        data_prefix=data_prefix,
        ann_file='snli_ve/snli_ve_dev.jsonl',
        pipeline=test_pipeline,
        test_mode=True,
    ),
)
test_dataloader = dict(
    val_dataloader, dataset=dict(val_dataloader['dataset'], ann_file='snli_ve/snli_ve_test.jsonl')
)
val_evaluator = dict(type='EntailmentMetric')
test_evaluator = val_evaluator
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
