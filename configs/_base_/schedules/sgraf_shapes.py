# The recipe of sgraf.py for the embedded world: a larger learning rate, fewer epochs.
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=2)
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    optimizer=dict(type='Adam', lr=2e-3),
    clip_grad=dict(max_norm=2.0),
)
param_scheduler = [dict(type='StepLR', gamma=0.1, step_size=1)]
