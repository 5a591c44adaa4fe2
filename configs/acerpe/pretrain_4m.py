# ACE-RPE pre-training on COCO, Visual Genome, SBU and CC3M: 4.0M images, 5.1M pairs (Sec. 4.1).
# `tools/dist_train.sh configs/acerpe/pretrain_4m.py 8`; docs/data.md says how to get each set.
_base_ = [
    '../_base_/models/acerpe_base.py',
    '../_base_/datasets/pretrain_4m.py',
    '../_base_/schedules/pretrain_albef.py',
    '../_base_/momentum_distillation.py',
    '../_base_/default_runtime.py',
]

# Sec. 4.1, Implementation Details. Beyond the text encoder BERT starts what it starts in ALBEF: its
# layers 6 to 11 the fusion encoder without cross-attention, its prediction head the MLM head.
bert = 'bert-base-uncased'
model = dict(
    backbone=dict(
        image_encoder=dict(pretrained=True),
        text_encoder=dict(pretrained=bert),
        fusion=dict(pretrained=bert, first_layer=6),
    ),
    heads=dict(mlm=dict(pretrained=bert)),
)
train_dataloader = dict(global_batch_size=512)  # whatever the number of GPUs
custom_hooks = [_base_.momentum_distillation]
