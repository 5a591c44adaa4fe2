# ALBEF's fine-tuning for tasks that add a head (VE.yaml, NLVR.yaml, VQA.yaml); the experiment sets
# the number of epochs.
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    dtype='bfloat16',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=2e-5, weight_decay=0.02),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.5, by_epoch=False, end=100),  # from 1e-5
    dict(type='CosineAnnealingLR', eta_min=1e-6, by_epoch=True, convert_to_iter_based=True),
]
find_unused_parameters = True  # the contrastive projections
