# Fine-tuning from pretrain_shapes.py as retrieval: one epoch, no warm-up.
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=1)
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=5e-4, weight_decay=0.02),
    clip_grad=dict(max_norm=5.0),
)
param_scheduler = [
    dict(type='CosineAnnealingLR', eta_min=1e-5, by_epoch=True, convert_to_iter_based=True),
]
