# ALBEF as released (Li et al., 2021), a special case of the model: twelve image blocks, no
# position, only words look at patches, ITC in the place of the anchor loss, no MIM, texts without
# [SEP]. Its weights load by tools/model_converters/albef.py.
_base_ = [
    '../_base_/models/acerpe_base.py',
    '../_base_/models/albef_layout.py',
    '../_base_/datasets/pretrain_4m.py',
    '../_base_/schedules/pretrain_albef.py',
    '../_base_/momentum_distillation.py',
    '../_base_/default_runtime.py',
]

model = dict(
    _base_.albef_layout,
    backbone=dict(
        _base_.albef_layout.backbone,
        image_encoder=dict(_base_.albef_layout.backbone.image_encoder, pretrained=True),
        text_encoder=dict(pretrained='bert-base-uncased'),
        # BERT's layers 0 to 5 are the text encoder, 6 to 11 the fusion encoder without its
        # cross-attention, and its prediction head the MLM head (Pretrain.py, BertForMaskedLM).
        fusion=dict(streams='text', pretrained='bert-base-uncased', first_layer=6),
    ),
    heads=dict(
        _delete_=True,
        itc=dict(type='ITCHead', temperature=0.07),
        itm=dict(type='ITMHead'),
        mlm=dict(type='MLMHead', mask_probability=0.15, pretrained='bert-base-uncased'),
    ),
)

train_dataloader = dict(global_batch_size=512)
custom_hooks = [_base_.momentum_distillation]
param_scheduler = [
    # 1e-5 to 1e-4 in 20 steps of 100 iterations, then to 1e-5, a step an epoch
    dict(
        type='AlbefLR', warmup_lr=1e-5, warmup_steps=20, eta_min=1e-5, convert_to_iter_based=True
    ),
]
