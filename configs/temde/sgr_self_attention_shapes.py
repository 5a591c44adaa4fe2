# SGR with self-attention in the place of T-EMDE, on the embedded world.
_base_ = './sgr_temde_shapes.py'

model = dict(
    similarity=dict(global_pooling=dict(_delete_=True, type='SelfAttentionGlobal', regions=8)),
)
