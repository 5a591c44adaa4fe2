# The embedded world as SNLI-VE: `python tools/make_shapes.py --out data/shapes`. No flip:
# hypotheses say left and right. Test scenes hold compositions that training lacks.
data_root = 'data/shapes/'
data_prefix = dict(image='images')
pipeline = [dict(type='LoadImage'), dict(type='PackImageText', fields=('label', 'pair_id'))]

train_dataloader = dict(
    global_batch_size=64,
    num_workers=1,
    persistent_workers=True,
    drop_last=True,
    sampler=dict(type='EpochSampler'),
    collate_fn=dict(type='xmodal.stack_images'),
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
    batch_size=100,
    num_workers=1,
    sampler=dict(type='DefaultSampler', shuffle=False, round_up=False),
    collate_fn=dict(type='xmodal.stack_images'),
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
