# ALBEF's pre-training (Pretrain.yaml), which ACE-RPE follows (Sec. 4.1): 30 epochs, batch 512.
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=30)
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    dtype='bfloat16',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=1e-4, weight_decay=0.02),
)
param_scheduler = [
    # ALBEF's warm-up: 2,000 iterations from 1e-5. ACE-RPE's paper gives none.
    dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=2000),
    # 1e-4 to 1e-6 over all 30 epochs, a step an iteration. (ALBEF steps by epoch: albef_4m.py.)
    dict(type='CosineAnnealingLR', eta_min=1e-6, by_epoch=True, convert_to_iter_based=True),
]
