# SAF without its global module, on the embedded world.
_base_ = './saf_temde_shapes.py'

model = dict(similarity=dict(global_pooling=None))
