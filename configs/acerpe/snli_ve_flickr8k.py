# Visual entailment on a few thousand pairs over your own Flickr8k, fine-tuned from
# pretrain_flickr8k.py: minutes on two CPU cores.
_base_ = [
    '../_base_/models/acerpe_photographs.py',
    '../_base_/datasets/snli_ve_flickr8k.py',
    '../_base_/schedules/finetune_photographs.py',
    '../_base_/default_runtime.py',
]

model = dict(
    _delete_=True,
    type='AlbefClassifier',
    data_preprocessor=dict(_base_.model.data_preprocessor, max_length=40),  # 30 words are not cut
    backbone=_base_.model.backbone,
    head=dict(type='ClassificationHead', num_classes=3),
    momentum=None,  # a run of minutes is over before a teacher knows more than the model
)
load_from = 'work_dirs/pretrain_flickr8k/epoch_12.pth'

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=3)
# Some pairs are of photographs outside Flickr8k's lists: others take their place.
default_hooks = dict(broken_images=dict(limit=0.03))
find_unused_parameters = True  # the contrastive projections
