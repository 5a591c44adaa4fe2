# LXMERT on the embedded world's questions in VQA's form, fine-tuned from pretrain_shapes.py:
# minutes on two CPU cores.
_base_ = [
    '../_base_/models/lxmert_shapes.py',
    '../_base_/datasets/vqa_regions_shapes.py',
    '../_base_/schedules/lxmert_shapes.py',
    '../_base_/default_runtime.py',
]

work_dir = 'work_dirs/lxmert_vqa_shapes'
model = dict(
    _delete_=True,
    type='LxmertVQA',
    data_preprocessor=_base_.model.data_preprocessor,
    backbone=_base_.model.backbone,
    head=dict(
        type='AnswerTableHead', answer_list='data/shapes/vqa/answer_list.json', loss='bce',
    ),
)
load_from = 'work_dirs/lxmert_pretrain_shapes/epoch_4.pth'

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=2)
train_dataloader = dict(global_batch_size=64)
optim_wrapper = dict(optimizer=dict(lr=5e-4))
find_unused_parameters = True  # the image stream of the last layer
