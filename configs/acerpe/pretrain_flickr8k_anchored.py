# Anchors that find what words mean, though both encoders are frozen and no box is seen: their
# contrast, beside the ITC of pretrain_flickr8k_grid.py, trains a linear adapter of the cells. They
# are those of one CNN, without crops.
_base_ = './pretrain_flickr8k_grid.py'

model = dict(
    backbone=dict(
        image_encoder=dict(feature_dims=1280),
        image_adapter=dict(hidden_dims=None),
        text_adapter=None,
        text_encoder=dict(frozen=True),
        position=dict(_delete_=True, type='AnchorRelativePosition', groups=4),
    ),
    heads=dict(anchors=dict(type='AnchorContrastHead')),
)
train_dataloader = dict(
    global_batch_size=128,  # every word with every cell: 0.4 GB
    dataset=dict(pipeline=_base_.pipeline),
)
val_dataloader = dict(dataset=dict(pipeline=_base_.pipeline))
test_dataloader = val_dataloader
train_cfg = dict(max_epochs=2, val_interval=2)
optim_wrapper = dict(paramwise_cfg=dict(_delete_=True))
