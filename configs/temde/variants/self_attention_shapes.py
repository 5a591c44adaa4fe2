# Tables 1 and 2, "SAF" and "SGR": self-attention, with the regions of the embedded world.
_base_ = '../saf_temde_shapes.py'

model = dict(
    similarity=dict(global_pooling=dict(_delete_=True, type='SelfAttentionGlobal', regions=8)),
)
