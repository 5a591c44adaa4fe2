# Tables 1 and 2, "SAF" and "SGR": self-attention.
_base_ = '../saf_temde_f30k.py'

model = dict(
    similarity=dict(global_pooling=dict(_delete_=True, type='SelfAttentionGlobal', regions=36)),
)
