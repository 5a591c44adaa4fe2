# EMKUM_TTE' on COCO, CC3M and CC12M: token types after the encoders, with LayerScale. The test is
# retrieval on COCO and Flickr30K and zero-shot classification of ImageNet; leave out a missing one
# by test_cfg.loops.imagenet=None.
# `tools/dist_train.sh configs/emkum/tte_post_coco_cc.py 2`
_base_ = [
    '../_base_/models/emkum_base.py',
    '../_base_/datasets/emkum_coco_cc.py',
    '../_base_/datasets/zero_shot_imagenet.py',
    '../_base_/default_runtime.py',
]

model = dict(
    image_encoder=dict(pretrained='data/data2vec2/image.pth'),
    text_encoder=dict(pretrained='data/data2vec2/text'),
    token_type=dict(type='TokenTypeEmbedding', position='post_encoder', layer_scale=1e-5)
)
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=7)
zero_shot = dict(_base_.zero_shot, max_words=None)  # prompts as captions
test_cfg = dict(
    type='CompositeEvalLoop',
    loops=dict(
        coco=dict(type='RetrievalLoop', scorer=dict(type='ITMReranker', topk=0)),
        flickr30k=dict(
            type='RetrievalLoop',
            scorer=dict(type='ITMReranker', topk=0),
            dataloader=_base_.flickr30k_dataloader,
        ),
        imagenet=zero_shot,
    ),
)
custom_hooks = [dict(type='LayerScaleStatsHook')]
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    dtype='bfloat16',  # published: float16
    constructor='NoDecayConstructor',
    paramwise_cfg=dict(decay_token_types=True),  # as published; γ is not
    # 1e-4 for 256 pairs, and two GPUs had 256 each.
    optimizer=dict(type='AdamW', lr=2e-4, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.01),
)
warm_up = 0.1 * train_cfg['max_epochs']
param_scheduler = [
    dict(
        type='LinearLR', start_factor=1e-3, by_epoch=True, end=warm_up, convert_to_iter_based=True
    ),
    dict(
        type='CosineAnnealingLR', eta_min=0, begin=warm_up, by_epoch=True,
        convert_to_iter_based=True,
    ),
]
