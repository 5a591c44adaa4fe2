# Flickr30K as the region features of SCAN's data (docs/temde.md):
#
#   data/f30k_precomp/{train,dev,test}_{ims.npy,caps.txt,ids.txt}
#   data/f30k_precomp/vocab.json
#
# 36 regions an image, 2,048 wide; every caption is a separate training sample.
_base_ = '../loaders.py'

data_root = 'data/f30k_precomp/'
train_dataloader = dict(
    _base_.region_loaders.train,
    global_batch_size=128,
    dataset=dict(type='PrecompDataset', data_root=data_root, split='train'),
)
val_dataloader = dict(
    _base_.region_loaders.test,
    batch_size=128,
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
