# Weakly supervised grounding on the embedded world, fine-tuned from pretrain_shapes.py as
# retrieval: scenes with expressions and no boxes. Minutes on two CPU cores.
_base_ = [
    '../_base_/models/acerpe_shapes.py',
    '../_base_/datasets/refcoco_plus_shapes.py',
    '../_base_/default_runtime.py',
]

# As pre-training, without the two that predict what is hidden.
model = dict(heads=dict(mlm=None, mim=None))
load_from = 'work_dirs/pretrain_shapes/epoch_9.pth'

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
