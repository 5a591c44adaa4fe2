# LXMERT on the embedded world's statements over two images, fine-tuned from pretrain_shapes.py:
# minutes on two CPU cores.
_base_ = [
    '../_base_/models/lxmert_shapes.py',
    '../_base_/datasets/nlvr2_regions_shapes.py',
    '../_base_/schedules/lxmert_shapes.py',
    '../_base_/default_runtime.py',
]

work_dir = 'work_dirs/lxmert_nlvr2_shapes'
model = dict(
    _delete_=True,
    type='LxmertNLVR',
    data_preprocessor=_base_.model.data_preprocessor,
    backbone=_base_.model.backbone,
    head=dict(type='PooledClassificationHead', num_classes=2, images=2),
)
load_from = 'work_dirs/lxmert_pretrain_shapes/epoch_4.pth'

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=5)
train_dataloader = dict(global_batch_size=64)
optim_wrapper = dict(optimizer=dict(lr=5e-4))
default_hooks = dict(checkpoint=dict(save_best='accuracy', rule='greater'))
find_unused_parameters = True  # the image stream of the last layer
