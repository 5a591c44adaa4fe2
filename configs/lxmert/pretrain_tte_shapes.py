# Token types with LayerScale (EMKUM) in LXMERT: pretrain_shapes.py with one more key, on what comes
# out of both encoders.
_base_ = './pretrain_shapes.py'

work_dir = 'work_dirs/lxmert_pretrain_tte_shapes'
model = dict(
    backbone=dict(
        token_type=dict(type='TokenTypeEmbedding', position='post_encoder', layer_scale=1e-5)
    )
)
custom_hooks = [dict(type='LayerScaleStatsHook')]
