# ACE-RPE on a few thousand photographs (your own Flickr8k, docs/data.md), as far as two CPU cores
# take it in about half an hour: a pretrained text encoder and an image encoder from random weights.
# Retrieval on the 1,000 photographs of Flickr8k's dev part. Further lists in ALBEF's format:
#   --cfg-options train_dataloader.dataset.ann_file="['flickr8k/albef/train.json', 'mine.json']"
# _base_/models/acerpe_photographs.py says where the text encoder comes from.
_base_ = [
    '../_base_/models/acerpe_photographs.py',
    '../_base_/datasets/flickr8k.py',
    '../_base_/default_runtime.py',
]

# MiniLM has six layers: the first four are the text encoder, from the last two the fusion encoder
# starts (without cross-attention). It comes without a prediction head for the MLM head.
model = dict(
    backbone=dict(
        text_encoder=dict(pretrained=_base_.minilm),
        fusion=dict(pretrained=_base_.minilm, first_layer=4),
    )
)
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=12, val_interval=3)
custom_hooks = [dict(type='DelayedHeadsHook', epochs=dict(ace=10, itm=10, mlm=10, mim=10))]
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=3e-4, weight_decay=0.05),
    clip_grad=dict(max_norm=5.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.02, by_epoch=False, end=50),
    dict(type='CosineAnnealingLR', eta_min=1e-5, by_epoch=True, convert_to_iter_based=True),
]
find_unused_parameters = True  # the heads that wait
