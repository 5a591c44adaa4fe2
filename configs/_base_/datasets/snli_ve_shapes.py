# The embedded world as SNLI-VE: `python tools/make_shapes.py --out data/shapes`. No flip:
# hypotheses say left and right. Test scenes hold compositions that training lacks.
_base_ = '../loaders.py'

data_root = 'data/shapes/'
data_prefix = dict(image='images')
pipeline = [dict(type='LoadImage'), dict(type='PackImageText', fields=('label', 'pair_id'))]

train_dataloader = dict(
    _base_.small_image_loaders.train,
    global_batch_size=64,
    dataset=dict(
        type='SnliVeDataset',
        data_root=data_root,
        data_prefix=data_prefix,
        ann_file='snli_ve/snli_ve_train.jsonl',
        image_path='{Flickr30K_ID}.png',
        pipeline=pipeline,
    ),
)
val_dataloader = dict(
    _base_.small_image_loaders.test,
    batch_size=100,
    dataset=dict(
        type='SnliVeDataset',
        data_root=data_root,
        data_prefix=data_prefix,
        ann_file='snli_ve/snli_ve_dev.jsonl',
        image_path='{Flickr30K_ID}.png',
        pipeline=pipeline,
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
