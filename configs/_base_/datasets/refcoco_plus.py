# Weakly supervised grounding on RefCOCO+ (docs/tasks/grounding.md):
#
#   data/refcoco+/{refs(unc).p,instances.json}     REFER's
#   data/refcoco+/dets.json                        boxes of MAttNet's detector
#   data/coco/train2014/COCO_train2014_*.jpg
#
# Expressions with their images, no boxes, are what is trained on. As ALBEF: 384 pixels, no crop.
_base_ = '../loaders.py'

data_root = 'data/'
data_prefix = dict(image='coco/train2014')
ann_file = 'refcoco+/refs(unc).p'
instances = 'refcoco+/instances.json'
proposals = 'refcoco+/dets.json'  # None: the annotated boxes of the image
image_size = 384
train_pipeline = [
    dict(type='LoadImage'),
    dict(type='ResizeImage', size=image_size),
    dict(type='AlbefAugment', size=image_size, scale=(1.0, 1.0)),  # all of the square: no crop
    dict(type='RandomFlip'),  # not where the expression says left or right
    dict(type='PackImageText'),
]
test_pipeline = [
    dict(type='LoadImage'),
    dict(type='ResizeImage', size=image_size),
    dict(type='PackImageText', fields=('ref_id', 'sent_id', 'split', 'size', 'box', 'proposals')),
]
train_dataloader = dict(
    _base_.image_loaders.train,
    global_batch_size=256,
    dataset=dict(
        type='ReferDataset',
        data_root=data_root,
        data_prefix=data_prefix,
        ann_file=ann_file,
        instances=instances,
        split='train',
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    _base_.image_loaders.test,
    batch_size=32,
    dataset=dict(
        type='ReferDataset',
        data_root=data_root,
        data_prefix=data_prefix,
        ann_file=ann_file,
        instances=instances,
        proposals=proposals,
        split='val',
        pipeline=test_pipeline,
        test_mode=True,
    ),
)
test_dataloader = dict(
    val_dataloader, dataset=dict(val_dataloader['dataset'], split=['val', 'testA', 'testB'])
)
val_evaluator = dict(type='GroundingMetric')
test_evaluator = val_evaluator
val_cfg = dict(type='GroundingLoop')
test_cfg = val_cfg
