# T-EMDE / SGR on photographs: saf_temde_flickr8k.py with the other reasoning.
#   python tools/train.py configs/temde/sgr_temde_flickr8k.py
_base_ = './saf_temde_flickr8k.py'

model = dict(similarity=dict(reasoning=dict(type='SGR')))
