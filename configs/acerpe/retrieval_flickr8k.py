# Retrieval on your own Flickr8k, fine-tuned from pretrain_flickr8k.py: minutes on two CPU cores.
# Tested on the 1,000 photographs of its dev part.
_base_ = [
    '../_base_/models/acerpe_photographs.py',
    '../_base_/datasets/flickr8k.py',
    '../_base_/default_runtime.py',
]

image_size = _base_.model.network.image_encoder.image_size
train_pipeline = [
    dict(type='LoadImage'),
    dict(type='Augment', size=image_size, scale=(0.5, 1.0), num_ops=1),
    dict(type='RandomFlip'),
    dict(type='PackImageText'),
]
test_pipeline = [
    dict(type='LoadImage'),
    dict(type='ResizeImage', size=image_size),
    dict(type='PackImageText'),
]
# An epoch shows every photograph with a caption drawn. Where there is time for five times as many
# iterations, dataset.captions='each' shows all captions, those of a photograph as positives of each
# other.
train_dataloader = dict(global_batch_size=32, num_workers=1, dataset=dict(pipeline=train_pipeline))
test_dataloader = dict(num_workers=1, dataset=dict(pipeline=test_pipeline))
test_cfg = dict(rerank_topk=10, add_similarity=True)
val_dataloader = None  # dev is the test
val_evaluator = None
val_cfg = None

# As pre-training, without the two that predict what is hidden.
model = dict(heads=dict(mlm=None, mim=None))
load_from = 'work_dirs/pretrain_flickr8k/epoch_12.pth'

train_cfg = dict(type='ExactEpochTrainLoop', max_epochs=2)
optim_wrapper = dict(
    type='AnyDeviceOptimWrapper',
    constructor='NoDecayConstructor',
    # On a CPU an unfused AdamW takes a quarter of a step of this size.
    optimizer=dict(type='AdamW', lr=1e-4, weight_decay=0.05, fused=True),
    clip_grad=dict(max_norm=5.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.02, by_epoch=False, end=50),
    dict(type='CosineAnnealingLR', eta_min=1e-6, by_epoch=True, convert_to_iter_based=True),
]
