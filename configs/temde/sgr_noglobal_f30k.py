# SGR without its global module, on Flickr30K (Table 2, "SGR no global").
_base_ = './sgr_temde_f30k.py'

model = dict(similarity=dict(global_pooling=None))
