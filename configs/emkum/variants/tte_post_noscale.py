# After the encoders, without LayerScale.
_base_ = '../tte_post_coco_cc.py'

model = dict(token_type=dict(layer_scale=None))
