# LXMERT on a thousand questions of VQA v2, fine-tuned from pretrain_photographs_grid.py: a minute
# on two CPU cores.
_base_ = [
    '../_base_/models/lxmert_photographs.py',
    '../_base_/datasets/vqa_coco_mini_grid.py',
    '../_base_/schedules/flickr8k_grid.py',
    '../_base_/default_runtime.py',
]

work_dir = 'work_dirs/lxmert_vqa_coco_mini_grid'
model = dict(
    _delete_=True,
    type='LxmertVQA',
    data_preprocessor=_base_.model.data_preprocessor,
    backbone=_base_.model.backbone,
    head=dict(type='AnswerTableHead', answer_list=_base_.answer_list, loss='bce'),
)
load_from = 'work_dirs/lxmert_pretrain_photographs_grid/epoch_1.pth'

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=6)
optim_wrapper = dict(
    optimizer=dict(lr=3e-4),
    paramwise_cfg=dict(custom_keys={'text_encoder': dict(lr_mult=0.1)}),
)
find_unused_parameters = True  # the image stream of the last layer
