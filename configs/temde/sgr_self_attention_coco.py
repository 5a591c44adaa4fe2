# SGR as published, on COCO (Table 2, "SGR"): self-attention in the place of T-EMDE.
_base_ = './sgr_temde_coco.py'

model = dict(
    similarity=dict(global_pooling=dict(_delete_=True, type='SelfAttentionGlobal', regions=36)),
)
