# Visual reasoning on NLVR2 (docs/tasks/reasoning.md), as its authors' archives unpack:
#
#   data/nlvr2/{train,dev,test1}.json
#   data/nlvr2/images/train/{0..99}/train-*.png   data/nlvr2/{dev,test1}/*.png
#
# 384 pixels, as ALBEF fine-tunes; each of the two images is augmented separately.
_base_ = '../loaders.py'

data_root = 'data/'
data_prefix = dict(image='nlvr2')
image_size = 384
fields = ('label', 'identifier', 'group')
train_pipeline = [
    dict(
        type='ForEachImage',
        transforms=[
            dict(type='LoadImage'),
            dict(type='AlbefAugment', size=image_size, scale=(0.5, 1.0)),
            dict(type='RandomFlip'),  # not where the statement says left or right
        ],
    ),
    dict(type='PackImageText', fields=fields),
]
test_pipeline = [
    dict(
        type='ForEachImage',
        transforms=[dict(type='LoadImage'), dict(type='ResizeImage', size=image_size)],
    ),
    dict(type='PackImageText', fields=fields),
]
train_dataloader = dict(
    _base_.image_loaders.train,
    global_batch_size=128,
    dataset=dict(
        type='Nlvr2Dataset',
        data_root=data_root,
        data_prefix=data_prefix,
        ann_file='nlvr2/train.json',
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    _base_.image_loaders.test,
    batch_size=32,
    dataset=dict(
        type='Nlvr2Dataset',
        data_root=data_root,
        data_prefix=data_prefix,
        ann_file='nlvr2/dev.json',
        pipeline=test_pipeline,
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
