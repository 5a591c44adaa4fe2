# LXMERT for NLVR's drawings, small: the features of an object are 8 x 8 pixels, and words are
# learnt from scratch.
width = 64
model = dict(
    type='LxmertNLVR',
    data_preprocessor=dict(
        type='RegionTextPreprocessor',
        tokenizer=dict(pretrained='data/nlvr1/vocab.txt'),
        max_length=40,  # 30 words are not cut
    ),
    backbone=dict(
        image_encoder=dict(
            type='ObjectEncoder', feature_dims=192, embed_dims=width, depth=1, num_heads=2,
            feedforward_dims=2 * width, dropout=0.0,
        ),
        text_encoder=dict(
            type='BertTextEncoder',
            config=dict(
                vocab_size=192, hidden_size=width, num_hidden_layers=1, num_attention_heads=2,
                intermediate_size=2 * width, max_position_embeddings=40, initializer_range=0.06,
                hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
            ),
        ),
        fusion=dict(
            type='CrossModalityEncoder', depth=2, embed_dims=width, num_heads=2,
            feedforward_dims=2 * width, dropout=0.0,
        ),
        position=dict(type='NoPosition'),
    ),
    head=dict(type='PooledClassificationHead', num_classes=2, images=3),
)
