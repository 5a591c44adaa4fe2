# EMKUM_TTE on photographs: token types before the encoders' blocks, without LayerScale.
_base_ = './tte_post_flickr8k.py'

model = dict(token_type=dict(position='pre_encoder', layer_scale=None))
