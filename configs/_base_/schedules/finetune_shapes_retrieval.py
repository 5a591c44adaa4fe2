# Fine-tuning from pretrain_shapes.py as retrieval: one epoch, no warm-up.
_base_ = 'finetune_shapes.py'

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=1)
param_scheduler = [
    dict(type='CosineAnnealingLR', eta_min=1e-5, by_epoch=True, convert_to_iter_based=True),
]
