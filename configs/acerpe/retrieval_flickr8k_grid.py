_base_ = './pretrain_flickr8k_grid.py'

model = dict(
    backbone=dict(frozen=['image_proj', 'text_proj']),
    heads=dict(itc=dict(frozen=True)),
)
load_from = 'work_dirs/pretrain_flickr8k_grid/epoch_3.pth'
train_dataloader = dict(global_batch_size=128)
train_cfg = dict(max_epochs=8)
custom_hooks = []
optim_wrapper = dict(optimizer=dict(lr=5e-4))
