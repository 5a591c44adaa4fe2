# COCO as the region features of SCAN's data (docs/temde.md):
#
#   data/coco_precomp/{train,dev,testall}_{ims.npy,caps.txt,ids.txt}
#   data/coco_precomp/vocab.json
#
# 36 regions an image, 2,048 wide; every caption is a training sample of its own. Tested on all
# 5,000 images ('5k') and on five folds of 1,000, each searched apart ('1k'), from the same scores.
data_root = 'data/coco_precomp/'
train_dataloader = dict(
    global_batch_size=128,
    num_workers=4,
    persistent_workers=True,
    pin_memory=True,
    drop_last=True,
    sampler=dict(type='EpochSampler'),
    collate_fn=dict(type='xmodal.stack_regions'),
    dataset=dict(type='PrecompDataset', data_root=data_root, split='train'),
)
val_dataloader = dict(
    batch_size=128,
    num_workers=4,
    sampler=dict(type='DefaultSampler', shuffle=False, round_up=False),
    collate_fn=dict(type='xmodal.stack_regions'),
    # 1,000 of the 5,000 images of dev, as the reference
    dataset=dict(
        type='PrecompDataset', data_root=data_root, split='dev', max_images=1000, test_mode=True
    ),
)
test_dataloader = dict(
    val_dataloader,
    dataset=dict(type='PrecompDataset', data_root=data_root, split='testall', test_mode=True),
)
val_evaluator = dict(type='RetrievalMetric')
test_evaluator = [
    dict(type='RetrievalMetric', folds=5, prefix='1k'),
    dict(type='RetrievalMetric', prefix='5k'),
]
val_cfg = dict(type='RetrievalLoop', scorer=dict(type='AllPairsScorer'))
test_cfg = val_cfg
