# The dual encoder of dual_mean_shapes.py with generalized pooling (GPO).
_base_ = './dual_mean_shapes.py'

pooling = dict(type='GPOPooling')
model = dict(similarity=dict(image_pooling=pooling, text_pooling=pooling))
