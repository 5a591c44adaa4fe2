# Visual entailment on those pairs of SNLI-VE whose image is in your Flickr8k
# (docs/tasks/entailment.md); there is no third part, dev is the test.
#
#   data/flickr8k/snli_ve_mini/{train,dev}.jsonl      SNLI-VE's lines with "image": "NAME.jpg"
#   data/flickr8k/images/*.jpg
_base_ = '../loaders.py'

data_root = 'data/flickr8k/'
data_prefix = dict(image='images')
image_size = 112
fields = ('label', 'pair_id')
train_pipeline = [
    dict(type='LoadImage'),
    dict(type='AlbefAugment', size=image_size, scale=(0.5, 1.0), num_ops=1),
    dict(type='RandomFlip'),  # not where the hypothesis says left or right
    dict(type='PackImageText', fields=fields),
]
test_pipeline = [
    dict(type='LoadImage'),
    dict(type='ResizeImage', size=image_size),
    dict(type='PackImageText', fields=fields),
]
train_dataloader = dict(
    _base_.small_image_loaders.train,
    global_batch_size=32,
    dataset=dict(
        type='SnliVeDataset',
        data_root=data_root,
        data_prefix=data_prefix,
        ann_file='snli_ve_mini/train.jsonl',
        image_path='{image}',
        pipeline=train_pipeline,
    ),
)
test_dataloader = dict(
    _base_.small_image_loaders.test,
    batch_size=100,
    dataset=dict(
        type='SnliVeDataset',
        data_root=data_root,
        data_prefix=data_prefix,
        ann_file='snli_ve_mini/dev.jsonl',
        image_path='{image}',
        pipeline=test_pipeline,
        test_mode=True,
    ),
)
test_evaluator = dict(type='EntailmentMetric')
test_cfg = dict(type='TestLoop')
