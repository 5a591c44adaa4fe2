# A dual encoder with generalized pooling (GPO) on Flickr30K, with the schedule of VSE∞ (Chen et
# al., CVPR 2021). docs/temde.md says where it is not VSE∞.
# `python tools/train.py configs/temde/dual_gpo_f30k.py`
_base_ = [
    '../_base_/models/sgraf.py',
    '../_base_/datasets/f30k_precomp.py',
    '../_base_/default_runtime.py',
]

model = dict(
    data_preprocessor=dict(tokenizer=dict(vocabulary='data/f30k_precomp/vocab.json')),
    similarity=dict(
        _delete_=True,
        type='PooledSimilarity',
        image_pooling=dict(type='GPOPooling'),
        text_pooling=dict(type='GPOPooling'),
        proj_dims=1024,
    ),
)
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=25)
custom_hooks = [dict(type='NegativesWarmupHook', epochs=1), dict(type='CollapseHook')]
default_hooks = dict(checkpoint=dict(save_best='rsum', rule='greater'))
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    optimizer=dict(type='AdamW', lr=5e-4, weight_decay=1e-4),
    clip_grad=dict(max_norm=2.0),
)
param_scheduler = [dict(type='MultiStepLR', gamma=0.1, milestones=[15])]
