# EMKUM on the embedded world without token types.
_base_ = './tte_post_shapes.py'

model = dict(token_type=None)
