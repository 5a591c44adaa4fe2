# Flickr30K as the region features of SCAN's data (docs/temde.md):
#
#   data/f30k_precomp/{train,dev,test}_{ims.npy,caps.txt,ids.txt}
#   data/f30k_precomp/vocab.json
#
# 36 regions an image, 2,048 wide; every caption is a training sample of its own.
data_root = 'data/f30k_precomp/'
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
    # 1,000 of the 1,014 images of dev, as the reference
    dataset=dict(
        type='PrecompDataset', data_root=data_root, split='dev', max_images=1000, test_mode=True
    ),
)
test_dataloader = dict(
    val_dataloader,
    dataset=dict(type='PrecompDataset', data_root=data_root, split='test', test_mode=True),
)
val_evaluator = dict(type='RetrievalMetric')
test_evaluator = val_evaluator
val_cfg = dict(type='RetrievalLoop', scorer=dict(type='AllPairsScorer'))
test_cfg = val_cfg
