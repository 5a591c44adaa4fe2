# SAF without its global module, on Flickr30K (Table 2, "SAF no global").
_base_ = './saf_temde_f30k.py'

model = dict(similarity=dict(global_pooling=None))
