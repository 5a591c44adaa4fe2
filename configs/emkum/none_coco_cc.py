# EMKUM on COCO, CC3M and CC12M without token types.
_base_ = './tte_post_coco_cc.py'

model = dict(token_type=None)
