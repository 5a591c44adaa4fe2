# COCO as the region features of SCAN's data (docs/temde.md):
#
#   data/coco_precomp/{train,dev,testall}_{ims.npy,caps.txt,ids.txt}
#   data/coco_precomp/vocab.json
#
# 36 regions an image, 2,048 wide; every caption is a separate training sample. Tested on all 5,000
# images ('5k') and on five folds of 1,000, each searched separately ('1k'), from the same scores.
_base_ = '../loaders.py'

data_root = 'data/coco_precomp/'
train_dataloader = dict(
    _base_.region_loaders.train,
    global_batch_size=128,
    dataset=dict(type='PrecompDataset', data_root=data_root, split='train'),
)
val_dataloader = dict(
    _base_.region_loaders.test,
    batch_size=128,
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
