# The recipe of LXMERT's pre-training (Sec. 3.3; what the paper leaves open is the released code's):
# 20 epochs, learning rate 1e-4 after a linear warm-up over the first 5 % of the steps, then
# linearly to 0. Weights of all kinds decay.
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=20)
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    optimizer=dict(type='BertAdam', lr=1e-4, weight_decay=0.01),
    clip_grad=dict(max_norm=1.0),
)
warm_up = 0.05 * train_cfg['max_epochs']
param_scheduler = [
    # The reference's first step has learning rate 0, from which MMEngine's factors find no way out.
    dict(
        type='LinearLR', start_factor=1e-6, end=warm_up, by_epoch=True, convert_to_iter_based=True
    ),
    dict(
        type='LinearLR', start_factor=1.0, end_factor=0.0, begin=warm_up, by_epoch=True,
        convert_to_iter_based=True,
    ),
]
