# LXMERT pre-trained on a few photographs with all five tasks, half an hour on one CPU core. Regions
# are the cells of grid features, and their labels ImageNet's classes. docs/lxmert.md has the data.
_base_ = [
    '../_base_/models/lxmert_photographs.py',
    '../_base_/datasets/lxmert_photographs.py',
    '../_base_/schedules/flickr8k_grid.py',
    '../_base_/default_runtime.py',
]

work_dir = 'work_dirs/lxmert_pretrain_photographs_grid'
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=1)
optim_wrapper = dict(
    optimizer=dict(lr=5e-4),
    paramwise_cfg=dict(custom_keys={'text_encoder': dict(lr_mult=0.1)}),
)
find_unused_parameters = True  # the image stream of the last layer, without objects to predict
