# EMKUM_TTE': after the encoders, with LayerScale.
_base_ = '../tte_post_coco_cc.py'
