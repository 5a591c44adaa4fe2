# The dual encoder of dual_mean_shapes.py with T-EMDE: sketch → linear → cosine.
_base_ = './dual_mean_shapes.py'

pooling = dict(type='TEMDE', partitions=16, centroids=8, inner_dims=8)
model = dict(similarity=dict(image_pooling=pooling, text_pooling=pooling))
