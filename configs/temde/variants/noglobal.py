# Tables 1 and 2, "no global".
_base_ = '../saf_temde_f30k.py'

model = dict(similarity=dict(global_pooling=None))
