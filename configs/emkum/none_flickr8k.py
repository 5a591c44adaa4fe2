# EMKUM on photographs without token types.
_base_ = './tte_post_flickr8k.py'

model = dict(token_type=None)
