# ACE-RPE pre-training on COCO, Visual Genome, SBU and CC3M: 4.0M images, 5.1M pairs (Sec. 4.1).
# `tools/dist_train.sh configs/acerpe/pretrain_4m.py 8`; docs/data.md says how to get each set.
_base_ = [
    '../_base_/models/acerpe_base.py',
    '../_base_/datasets/pretrain_4m.py',
    '../_base_/default_runtime.py',
]

# Sec. 4.1, Implementation Details
model = dict(
    backbone=dict(
        image_encoder=dict(pretrained=True), text_encoder=dict(pretrained='bert-base-uncased')
    )
)
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=30)
train_dataloader = dict(global_batch_size=512)  # whatever the number of GPUs
custom_hooks = [dict(type='MomentumDistillationHook', alpha=0.4, ramp_epochs=1)]  # ALBEF's
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    dtype='bfloat16',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=1e-4, weight_decay=0.02),
)
param_scheduler = [
    # ALBEF's warm-up: 2,000 iterations from 1e-5. The paper gives none.
    dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=2000),
    # 1e-4 to 1e-6 over all 30 epochs, a step an iteration.
    dict(type='CosineAnnealingLR', eta_min=1e-6, by_epoch=True, convert_to_iter_based=True),
]
