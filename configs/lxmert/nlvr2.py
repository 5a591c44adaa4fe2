# LXMERT fine-tuned for NLVR2 (Sec. 4.2): each image is fused with the statement alone.
#   python tools/train.py configs/lxmert/nlvr2.py
_base_ = [
    '../_base_/models/lxmert_base.py',
    '../_base_/datasets/nlvr2_regions.py',
    '../_base_/schedules/lxmert_finetune.py',
    '../_base_/default_runtime.py',
]

work_dir = 'work_dirs/lxmert_nlvr2'
model = dict(
    _delete_=True,
    type='LxmertNLVR',
    data_preprocessor=_base_.model.data_preprocessor,
    backbone=_base_.model.backbone,
    head=dict(type='PooledClassificationHead', num_classes=2, images=2),
)
load_from = 'work_dirs/lxmert_pretrain/epoch_20.pth'

train_dataloader = dict(global_batch_size=32)
default_hooks = dict(checkpoint=dict(save_best='accuracy', rule='greater'))
find_unused_parameters = True  # the image stream of the last layer
