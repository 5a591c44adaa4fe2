# EMKUM_TTE' on the embedded world: token types after the encoders, with LayerScale. Minutes on a
# CPU core, after `python tools/train.py configs/acerpe/encoder_shapes.py`. The test is retrieval on
# held-out scenes and zero-shot classification of single objects.
_base_ = [
    '../_base_/models/emkum_shapes.py',
    '../_base_/datasets/shapes_pretrain.py',
    '../_base_/datasets/zero_shot_shapes.py',
    '../_base_/default_runtime.py',
]

encoder = 'work_dirs/encoder_shapes/epoch_6.pth'
model = dict(
    image_encoder=dict(pretrained=encoder),
    teacher=dict(encoder=dict(pretrained=encoder)),
    token_type=dict(type='TokenTypeEmbedding', position='post_encoder', layer_scale=1e-5)
)
train_dataloader = dict(
    dataset=dict(
        pipeline=[
            dict(type='LoadImage'),
            dict(  # two independent crops, the student's and the teacher's
                type='TwoViews',
                transforms=[dict(type='AlbefAugment', size=96, scale=(0.9, 1.0), num_ops=0)],
            ),
            dict(type='PackImageText'),
        ]
    )
)
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=10, val_interval=10)
test_cfg = dict(
    _delete_=True,
    type='CompositeEvalLoop',
    loops=dict(
        retrieval=dict(type='RetrievalLoop', scorer=dict(type='ITMReranker', topk=0)),
        zero_shot=_base_.zero_shot,
    ),
)
custom_hooks = [dict(type='LayerScaleStatsHook')]
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    constructor='NoDecayConstructor',
    paramwise_cfg=dict(decay_token_types=True),  # as published; γ is not
    optimizer=dict(type='AdamW', lr=1e-3, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.01),
)
warm_up = 0.1 * train_cfg['max_epochs']
param_scheduler = [
    dict(
        type='LinearLR', start_factor=0.02, by_epoch=True, end=warm_up, convert_to_iter_based=True
    ),
    dict(
        type='CosineAnnealingLR', eta_min=0, begin=warm_up, by_epoch=True,
        convert_to_iter_based=True,
    ),
]
