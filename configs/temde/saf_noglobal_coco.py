# SAF without its global module, on COCO (Table 2, "SAF no global").
_base_ = './saf_temde_coco.py'

model = dict(similarity=dict(global_pooling=None))
