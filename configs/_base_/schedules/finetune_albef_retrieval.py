# ALBEF's fine-tuning for retrieval and grounding (Retrieval_*.yaml, Grounding.yaml); the
# experiment sets the number of epochs.
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    dtype='bfloat16',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=1e-5, weight_decay=0.02),
)
param_scheduler = [
    # A warm-up from 1e-5 to 1e-5, as in these files: it has no effect.
    dict(type='AlbefLR', warmup_lr=1e-5, warmup_steps=1, eta_min=1e-6, convert_to_iter_based=True),
]
