# Re-ranking by a fusion encoder, trained by ITM from random weights above the vectors of
# pretrain_flickr8k_grid.py, which stay as they are. Half an hour on two CPU cores.
_base_ = './pretrain_flickr8k_grid.py'

model = dict(
    backbone=dict(frozen=['image_proj', 'text_proj']),
    heads=dict(itc=dict(frozen=True), itm=dict(type='ITMHead')),
)
load_from = 'work_dirs/pretrain_flickr8k_grid/epoch_3.pth'
train_dataloader = dict(global_batch_size=128)
train_cfg = dict(max_epochs=4, val_interval=4)
optim_wrapper = dict(optimizer=dict(lr=5e-4))
