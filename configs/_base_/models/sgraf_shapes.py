# Small enough to learn the embedded world within minutes; the parts are those of sgraf.py.
model = dict(
    type='ImageTextMatcher',
    data_preprocessor=dict(
        type='RegionTextPreprocessor',
        tokenizer=dict(vocabulary='data/shapes/precomp/vocab.json'),
    ),
    image_encoder=dict(type='RegionEncoder', feature_dims=259, embed_dims=64),
    text_encoder=dict(
        type='GruTextEncoder', vocab_size=None, word_dims=64, embed_dims=64, dropout=0.1
    ),
    similarity=dict(
        type='SGRAFSimilarity',
        dim=32,
        smooth=9.0,
        global_pooling=dict(
            type='SketchGlobal',
            pooling=dict(type='TEMDE', partitions=16, centroids=8, inner_dims=8),
        ),
        reasoning=dict(type='SAF'),
    ),
    loss=dict(type='TripletLoss', margin=0.2),
)
