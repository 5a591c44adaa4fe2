# ALBEF's fine-tuning for retrieval and grounding (Retrieval_*.yaml, Grounding.yaml); the
# experiment sets the number of epochs.
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    dtype='bfloat16',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=1e-5, weight_decay=0.02),
)
param_scheduler = [
    dict(type='CosineAnnealingLR', eta_min=1e-6, by_epoch=True, convert_to_iter_based=True),
]
