# The dual encoder of dual_mean_shapes.py with the static EMDE, fitted to the first batch. No
# gradient passes it: the linear layers after it learn, and the encoders stay random projections.
_base_ = './dual_mean_shapes.py'

pooling = dict(type='EMDE', partitions=16, bits=3)  # K = 2³, as T-EMDE's
model = dict(similarity=dict(image_pooling=pooling, text_pooling=pooling))
find_unused_parameters = True  # several processes ask for it: the encoders have no gradient
