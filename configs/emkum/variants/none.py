# EMKUM: no token types.
_base_ = '../tte_post_coco_cc.py'

model = dict(token_type=None)
