# SGR without its global module, on COCO (Table 2, "SGR no global").
_base_ = './sgr_temde_coco.py'

model = dict(similarity=dict(global_pooling=None))
