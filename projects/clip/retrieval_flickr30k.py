# Retrieval among the 1K test images of Flickr30K (Karpathy's split), captions as they were written.
_base_ = ['./base.py', '../../configs/_base_/datasets/flickr30k_retrieval.py']

train_dataloader = val_dataloader = val_evaluator = val_cfg = None
test_dataloader = dict(
    dataset=dict(max_words=None, pipeline=[*_base_.images, dict(type='PackImageText')])
)
test_cfg = dict(scorer=dict(topk=0))  # ITC alone
work_dir = 'work_dirs/clip_retrieval_flickr30k'
