# SAF as published, on COCO (Table 2, "SAF"): self-attention in the place of T-EMDE.
_base_ = './saf_temde_coco.py'

model = dict(
    similarity=dict(global_pooling=dict(_delete_=True, type='SelfAttentionGlobal', regions=36)),
)
