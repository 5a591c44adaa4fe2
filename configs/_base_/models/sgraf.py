# SAF and SGR with T-EMDE (T-EMDE, Sec. 3.3) at the sizes of SGRAF (Diao et al., AAAI 2021).
model = dict(
    type='ImageTextMatcher',
    data_preprocessor=dict(type='RegionTextPreprocessor', tokenizer=dict(vocabulary=None)),
    image_encoder=dict(type='RegionEncoder', feature_dims=2048, embed_dims=1024),
    # vocab_size=None: that of the vocabulary
    text_encoder=dict(type='GruTextEncoder', vocab_size=None, word_dims=300, embed_dims=1024),
    similarity=dict(
        type='SGRAFSimilarity',
        dim=256,
        smooth=9.0,
        # N and K are the data's (Sec. 4.3), D = 8
        global_pooling=dict(
            type='SketchGlobal', pooling=dict(type='TEMDE', centroids=8, inner_dims=8)
        ),
        reasoning=dict(type='SAF'),
    ),
    loss=dict(type='TripletLoss', margin=0.2),
)
