# Weakly supervised grounding on the embedded world, `python tools/make_shapes.py --out
# data/shapes`, in the files of RefCOCO+; the boxes to choose from are those of all objects of the
# scene. testA has the compositions of training, testB those kept from it. No flip: expressions say
# left of.
_base_ = '../loaders.py'

data_root = 'data/shapes/'
ann_file = 'refcoco+/refs(unc).p'
instances = 'refcoco+/instances.json'
train_pipeline = [dict(type='LoadImage'), dict(type='PackImageText')]
test_pipeline = [
    dict(type='LoadImage'),
    dict(type='PackImageText', fields=('ref_id', 'sent_id', 'split', 'size', 'box', 'proposals')),
]
train_dataloader = dict(
    _base_.small_image_loaders.train,
    global_batch_size=64,
    dataset=dict(
        type='ReferDataset',
        data_root=data_root,
        ann_file=ann_file,
        instances=instances,
        split='train',
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    _base_.small_image_loaders.test,
    batch_size=100,
    dataset=dict(
        type='ReferDataset',
        data_root=data_root,
        ann_file=ann_file,
        instances=instances,
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
