# Token types with LayerScale after both encoders (EMKUM) in LXMERT.
_base_ = '../pretrain.py'

model = dict(
    backbone=dict(
        token_type=dict(type='TokenTypeEmbedding', position='post_encoder', layer_scale=1e-5)
    )
)
