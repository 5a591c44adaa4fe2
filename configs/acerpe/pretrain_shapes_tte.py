# pretrain_shapes.py with EMKUM's token types, with LayerScale, on the outputs of both encoders:
# position, fusion and heads see typed tokens.
_base_ = './pretrain_shapes.py'

model = dict(
    backbone=dict(
        token_type=dict(type='TokenTypeEmbedding', position='post_encoder', layer_scale=1e-5)
    )
)
custom_hooks = [*_base_.custom_hooks, dict(type='LayerScaleStatsHook')]
