# EMKUM_TTE on the embedded world: token types before the encoders' blocks, without LayerScale.
_base_ = './tte_post_shapes.py'

model = dict(token_type=dict(position='pre_encoder', layer_scale=None))
