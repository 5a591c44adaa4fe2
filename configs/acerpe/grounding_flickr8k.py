# Weakly supervised grounding of phrases on your own Flickr8k. Captions are what a model can learn
# from here, so there is nothing to train: the checkpoint is that of retrieval_flickr8k.py.
#   python tools/test.py configs/acerpe/grounding_flickr8k.py \
#       work_dirs/retrieval_flickr8k/epoch_2.pth
_base_ = [
    '../_base_/models/acerpe_photographs.py',
    '../_base_/datasets/flickr8k_phrases.py',
    '../_base_/default_runtime.py',
]

model = dict(heads=dict(mlm=None, mim=None))  # as retrieval_flickr8k.py
