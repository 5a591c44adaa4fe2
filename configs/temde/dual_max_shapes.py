# The dual encoder of dual_mean_shapes.py with the largest values of a token set.
_base_ = './dual_mean_shapes.py'

pooling = dict(type='MaxPooling')
model = dict(similarity=dict(image_pooling=pooling, text_pooling=pooling))
