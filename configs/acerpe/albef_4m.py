# ALBEF as released (Li et al., 2021), as the special case it is: twelve image blocks, no position,
# only words look at patches, ITC in the place of the anchor loss, no MIM, texts without [SEP].
# Its weights load by tools/model_converters/albef.py.
_base_ = [
    '../_base_/models/acerpe_base.py',
    '../_base_/datasets/pretrain_4m.py',
    '../_base_/default_runtime.py',
]

model = dict(
    data_preprocessor=dict(tokenizer=dict(add_sep=False)),
    backbone=dict(
        image_encoder=dict(depth=12, arch='deit_base_patch16_224', pretrained=True),
        text_encoder=dict(pretrained='bert-base-uncased'),
        position=dict(_delete_=True, type='none'),
        fusion=dict(streams='text'),
    ),
    heads=dict(
        _delete_=True,
        itc=dict(type='ITCHead', temperature=0.07),
        itm=dict(type='ITMHead'),
        mlm=dict(type='MLMHead', mask_probability=0.15),
    ),
)

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=30)
train_dataloader = dict(global_batch_size=512)
custom_hooks = [dict(type='MomentumDistillationHook', alpha=0.4, ramp_epochs=1)]
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    dtype='bfloat16',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=1e-4, weight_decay=0.02),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=2000),
    dict(type='CosineAnnealingLR', eta_min=1e-5, by_epoch=True, convert_to_iter_based=True),
]
