# ACE-RPE's five heads.
_base_ = '../../../configs/acerpe/pretrain_shapes.py'
