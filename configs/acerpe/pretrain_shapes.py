_base_ = ['../_base_/datasets/shapes_pretrain.py', '../_base_/default_runtime.py']

# Small enough to learn within minutes on two CPU cores; everything else is as in pretrain_4m.py.
width = 128
model = dict(
    type='CrossModalPretrainer',
    data_preprocessor=dict(
        type='ImageTextPreprocessor',
        mean=[127.5, 127.5, 127.5],
        std=[63.75, 63.75, 63.75],
        tokenizer=dict(pretrained='data/shapes/vocab.txt'),
        max_length=32,
    ),
    network=dict(
        image_encoder=dict(
            type='ViTImageEncoder', arch='vit_base_patch16_224', image_size=96, patch_size=16,
            embed_dim=width, num_heads=4, depth=4,
        ),
        text_encoder=dict(
            type='BertTextEncoder',
            config=dict(
                vocab_size=128, hidden_size=width, num_hidden_layers=2, num_attention_heads=4,
                intermediate_size=4 * width, max_position_embeddings=32,
                hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
            ),
        ),
        position=dict(type='ace_rpe', groups=8, delta=0.05, tau=1e4),
        fusion=dict(
            type='FusionEncoder', depth=2, embed_dims=width, num_heads=4, dropout=0.0,
            streams='both',
        ),
        vector_dims=64,
    ),
    heads=dict(
        itc=dict(type='ITCHead'),
        ace=dict(type='AnchorHead', token_scale=10.0),
        itm=dict(type='ITMHead'),
        mlm=dict(type='MLMHead'),
        mim=dict(type='MIMHead', block=16),
    ),
    queue_length=2048,
)

train_cfg = dict(type='ExactEpochTrainLoop', max_epochs=8)
custom_hooks = [dict(type='MomentumDistillationHook', alpha=0.0)]
optim_wrapper = dict(
    type='AnyDeviceOptimWrapper',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.02),
)
