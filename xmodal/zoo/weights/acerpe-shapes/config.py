default_scope = 'xmodal'
model = dict(
    backbone=dict(
        fusion=dict(
            depth=2,
            dropout=0.0,
            embed_dims=128,
            feedforward_dims=256,
            num_heads=4,
            streams='both',
            type='FusionEncoder',
        ),
        image_encoder=dict(
            arch='vit_base_patch16_224',
            conv_stem=True,
            depth=3,
            embed_dim=128,
            image_size=96,
            mlp_ratio=2,
            num_heads=4,
            patch_size=16,
            type='ViTImageEncoder',
            weight_init='jax',
        ),
        position=dict(delta=0.05, groups=4, tau=10000.0, type='AnchorRelativePosition'),
        proj_dims=128,
        text_encoder=dict(
            config=dict(
                attention_probs_dropout_prob=0.0,
                hidden_dropout_prob=0.0,
                hidden_size=128,
                initializer_range=0.06,
                intermediate_size=256,
                max_position_embeddings=32,
                num_attention_heads=4,
                num_hidden_layers=2,
                vocab_size=128,
            ),
            type='BertTextEncoder',
        ),
    ),
    data_preprocessor=dict(
        max_length=32,
        mean=[
            127.5,
            127.5,
            127.5,
        ],
        std=[
            63.75,
            63.75,
            63.75,
        ],
        tokenizer=dict(pretrained='{{ fileDirname }}/vocab.txt'),
        type='ImageTextPreprocessor',
    ),
    heads=dict(
        ace=dict(token_scale=50.0, type='AnchorHead'),
        itc=dict(type='ITCHead'),
        itm=dict(hardness=0.1, type='ITMHead'),
        mim=dict(block=16, source='image_encoder', type='MIMHead'),
        mlm=dict(type='MLMHead'),
    ),
    momentum=None,
    queue_length=0,
    type='AlbefPretrainer',
)
test_cfg = dict(scorer=dict(add_similarity=True, topk=10, type='ITMReranker'), type='RetrievalLoop')
test_dataloader = dict(
    batch_size=100,
    collate_fn=dict(type='xmodal.stack_images'),
    dataset=dict(
        ann_file='albef/test.json',
        data_root='data/shapes/',
        pipeline=[
            dict(type='LoadImage'),
            dict(type='PackImageText'),
        ],
        test_mode=True,
        type='AlbefJsonDataset',
    ),
    num_workers=1,
    sampler=dict(round_up=False, shuffle=False, type='DefaultSampler'),
)
test_evaluator = dict(type='RetrievalMetric')
