# The recipe of SGRAF (its Sec. 4.1), which T-EMDE follows (Sec. 4.3): Adam, a tenth of the learning
# rate from a certain epoch on. The experiment sets the number of epochs, and which one.
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=30)
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    optimizer=dict(type='Adam', lr=2e-4),
    clip_grad=dict(max_norm=2.0),
)
param_scheduler = [dict(type='StepLR', gamma=0.1, step_size=20)]
