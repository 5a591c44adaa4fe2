# Table 5, "Label": detected-label classification alone.
_base_ = '../pretrain.py'

model = dict(heads=dict(objects=dict(tasks=['objects', 'attributes'])))
