# Projections above frozen encoders of photographs and texts; the experiment sets the number of
# epochs.
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.05),
    clip_grad=dict(max_norm=2.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.02, by_epoch=False, end=30),
    dict(type='CosineAnnealingLR', eta_min=1e-6, by_epoch=True, convert_to_iter_based=True),
]
