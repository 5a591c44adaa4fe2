# ALBEF's fine-tuning for tasks that add a head (VE.yaml, NLVR.yaml, VQA.yaml); the experiment sets
# the number of epochs.
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    dtype='bfloat16',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=2e-5, weight_decay=0.02),
)
param_scheduler = [
    dict(type='AlbefLR', warmup_lr=1e-5, warmup_steps=1, eta_min=1e-6, convert_to_iter_based=True),
]
find_unused_parameters = True  # the contrastive projections
