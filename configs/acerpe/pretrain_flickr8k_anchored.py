# pretrain_flickr8k_grid.py with anchors: words find the cells of photographs that show what they
# mean, though both encoders are frozen and no box is seen. The adapter learns it.
_base_ = './pretrain_flickr8k_grid.py'

model = dict(
    backbone=dict(position=dict(_delete_=True, type='AnchorRelativePosition', groups=4)),
    heads=dict(anchors=dict(type='AnchorContrastHead')),
)
train_dataloader = dict(global_batch_size=128)  # every word with every cell: 0.4 GB
train_cfg = dict(max_epochs=2, val_interval=2)
