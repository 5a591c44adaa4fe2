# The embedded world as region features, `python tools/make_shapes.py --out data/shapes`, in the
# layout of SCAN's data: 8 regions an image, 259 wide. A caption is a training sample.
_base_ = '../loaders.py'

data_root = 'data/shapes/precomp/'
train_dataloader = dict(
    _base_.small_region_loaders.train,
    global_batch_size=64,
    dataset=dict(type='PrecompDataset', data_root=data_root, split='train'),
)
val_dataloader = dict(
    _base_.small_region_loaders.test,
    batch_size=128,
    dataset=dict(type='PrecompDataset', data_root=data_root, split='dev', test_mode=True),
)
test_dataloader = dict(val_dataloader, dataset=dict(val_dataloader['dataset'], split='test'))
val_evaluator = dict(type='RetrievalMetric')
test_evaluator = val_evaluator
val_cfg = dict(type='RetrievalLoop', scorer=dict(type='AllPairsScorer'))
test_cfg = val_cfg
