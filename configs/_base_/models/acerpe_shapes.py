# Small enough to learn the embedded world within minutes from random weights; the parts are those
# of acerpe_base.py.
width = 128
model = dict(
    type='AlbefPretrainer',
    data_preprocessor=dict(
        type='ImageTextPreprocessor',
        mean=[127.5, 127.5, 127.5],
        std=[63.75, 63.75, 63.75],
        tokenizer=dict(pretrained='data/shapes/vocab.txt'),
        max_length=32,
    ),
    backbone=dict(
        image_encoder=dict(
            type='ViTImageEncoder', arch='vit_base_patch16_224', image_size=96, patch_size=16,
            embed_dim=width, num_heads=4, mlp_ratio=2, depth=3, weight_init='jax', conv_stem=True,
        ),
        text_encoder=dict(
            type='BertTextEncoder',
            config=dict(
                vocab_size=128, hidden_size=width, num_hidden_layers=2, num_attention_heads=4,
                intermediate_size=2 * width, max_position_embeddings=32, initializer_range=0.06,
                hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
            ),
        ),
        position=dict(type='AnchorRelativePosition', groups=4, delta=0.05, tau=1e4),
        fusion=dict(
            type='FusionEncoder', depth=2, embed_dims=width, num_heads=4,
            feedforward_dims=2 * width, dropout=0.0, streams='both',
        ),
        proj_dims=128,
    ),
    heads=dict(
        itc=dict(type='ITCHead'),
        ace=dict(type='AnchorHead', token_scale=50.0),  # λ of Eq. 1: the best pairs alone
        itm=dict(type='ITMHead', hardness=0.1),
        mlm=dict(type='MLMHead'),
        mim=dict(type='MIMHead', block=16, source='image_encoder'),
    ),
    # A teacher that follows slowly is no better than random weights for longer than this run takes:
    # no queue and no teacher, the embeddings of the batch are the keys.
    queue_length=0,
    momentum=None,
)
