# The recipe of LXMERT's fine-tuning (Sec. 4.2; what the paper leaves open is the released code's):
# 4 epochs, batch 32, warm-up over the first tenth of the steps, then linearly to 0.
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=4)
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    optimizer=dict(type='BertAdam', lr=5e-5, weight_decay=0.01),
    clip_grad=dict(max_norm=5.0),
)
warm_up = 0.1 * train_cfg['max_epochs']
param_scheduler = [
    dict(
        type='LinearLR', start_factor=1e-6, end=warm_up, by_epoch=True, convert_to_iter_based=True
    ),
    dict(
        type='LinearLR', start_factor=1.0, end_factor=0.0, begin=warm_up, by_epoch=True,
        convert_to_iter_based=True,
    ),
]
