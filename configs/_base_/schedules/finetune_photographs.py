# Fine-tuning from pretrain_flickr8k.py; the experiment sets the number of epochs.
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=1e-4, weight_decay=0.05),
    clip_grad=dict(max_norm=5.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.02, by_epoch=False, end=50),
    dict(type='CosineAnnealingLR', eta_min=1e-6, by_epoch=True, convert_to_iter_based=True),
]
