# Table 5, "No Vision Tasks": no region is hidden either, of which the paper says nothing.
_base_ = '../pretrain.py'

model = dict(heads=dict(objects=None))
