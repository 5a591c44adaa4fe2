# EMKUM on photographs with token types after the encoders, without LayerScale:
# the cell that the paper's comparison lacks.
_base_ = './tte_post_flickr8k.py'

model = dict(token_type=dict(layer_scale=None))
