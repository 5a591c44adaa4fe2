# ALBEF itself on Flickr30K: the layout of albef_4m.py, the recipe of retrieval_flickr30k.py. Its
# authors' file flickr30k.pth is converted and tested, or a pre-trained one converted and
# fine-tuned.
#   python tools/model_converters/albef.py flickr30k.pth work_dirs/albef/retrieval_flickr30k.pth \
#       --config configs/acerpe/retrieval_flickr30k_albef.py
#   python tools/test.py configs/acerpe/retrieval_flickr30k_albef.py \
#       work_dirs/albef/retrieval_flickr30k.pth
_base_ = ['./retrieval_flickr30k.py', '../_base_/models/albef_layout.py']

model = dict(
    _base_.albef_layout, heads=dict(itc=dict(type='ITCHead', temperature=0.07), ace=None)
)
load_from = 'work_dirs/albef/retrieval_flickr30k.pth'
