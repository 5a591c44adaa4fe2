# Retrieval among the 5K test images of COCO (Karpathy's split), captions as they were written.
_base_ = ['./base.py', '../../configs/_base_/datasets/coco_retrieval.py']

train_dataloader = val_dataloader = val_evaluator = val_cfg = None
test_dataloader = dict(
    dataset=dict(max_words=None, pipeline=[*_base_.images, dict(type='PackImageText')])
)
test_cfg = dict(scorer=dict(topk=0))  # ITC alone
work_dir = 'work_dirs/clip_retrieval_coco'
