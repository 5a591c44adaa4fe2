# Visual reasoning over two images on the embedded world, fine-tuned from
# pretrain_shapes_anchored.py, whose fusion encoder knows where objects are. Minutes on one core.
_base_ = './nlvr2_shapes.py'

model = dict(backbone=dict(position=dict(_delete_=True, type='AnchorAbsolutePosition', groups=4)))
load_from = 'work_dirs/pretrain_shapes_anchored/epoch_8.pth'
# Patches stay where words find them, as in the pre-training.
optim_wrapper = dict(paramwise_cfg=dict(custom_keys={'image_encoder': dict(lr_mult=0.01)}))
train_cfg = dict(max_epochs=2)
