# Visual entailment on a few thousand pairs over your own Flickr8k, by the vectors of
# pretrain_flickr8k_grid.py, whose small BERT is fine-tuned: minutes on two CPU cores.
_base_ = [
    '../_base_/models/photographs_grid.py',
    '../_base_/datasets/snli_ve_flickr8k.py',
    '../_base_/schedules/flickr8k_grid.py',
    '../_base_/default_runtime.py',
]

model = dict(
    _delete_=True,
    type='AlbefVectorClassifier',
    data_preprocessor=dict(_base_.model.data_preprocessor, max_length=40),  # 30 words are not cut
    backbone=dict(_base_.model.backbone, frozen=['image_proj']),
    head=dict(type='ClassificationHead', num_classes=3),
)
load_from = 'work_dirs/pretrain_flickr8k_grid/epoch_3.pth'

pipeline = [
    dict(type='LoadRegions', store='data/flickr8k/lite0_lite2'),
    dict(type='PackRegionText', fields=_base_.fields),
]
train_dataloader = dict(
    collate_fn=dict(type='xmodal.stack_regions'), dataset=dict(pipeline=pipeline)
)
test_dataloader = train_dataloader
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=3)
optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys={'text_encoder': dict(lr_mult=0.05), 'text_proj': dict(lr_mult=0.05)}
    )
)
# Some pairs are of photographs outside Flickr8k's lists: others take their place.
default_hooks = dict(broken_images=dict(limit=0.03))
find_unused_parameters = True  # adapters and fusion encoder
