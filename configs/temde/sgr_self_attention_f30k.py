# SGR as published, on Flickr30K (Table 2, "SGR"): self-attention in the place of T-EMDE.
_base_ = './sgr_temde_f30k.py'

model = dict(
    similarity=dict(global_pooling=dict(_delete_=True, type='SelfAttentionGlobal', regions=36)),
)
