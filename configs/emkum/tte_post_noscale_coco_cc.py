# EMKUM on COCO, CC3M and CC12M with token types after the encoders, without LayerScale:
# the cell that the paper's comparison lacks.
_base_ = './tte_post_coco_cc.py'

model = dict(token_type=dict(layer_scale=None))
