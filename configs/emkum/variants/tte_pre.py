# EMKUM_TTE: before the encoders' blocks, without LayerScale.
_base_ = '../tte_post_coco_cc.py'

model = dict(token_type=dict(position='pre_encoder', layer_scale=None))
