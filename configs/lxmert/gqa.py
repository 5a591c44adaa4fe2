# LXMERT fine-tuned for GQA (Sec. 4.2): trained on train and val, balanced, tested on testdev.
#   python tools/train.py configs/lxmert/gqa.py
_base_ = [
    '../_base_/models/lxmert_base.py',
    '../_base_/datasets/gqa_regions.py',
    '../_base_/schedules/lxmert_finetune.py',
    '../_base_/default_runtime.py',
]

work_dir = 'work_dirs/lxmert_gqa'
model = dict(
    _delete_=True,
    type='LxmertVQA',
    data_preprocessor=_base_.model.data_preprocessor,
    backbone=_base_.model.backbone,
    head=dict(
        type='AnswerTableHead', answer_list='data/gqa/trainval_label2ans.json', loss='bce',  # 1,842
    ),
)
load_from = 'work_dirs/lxmert_pretrain/epoch_20.pth'

optim_wrapper = dict(optimizer=dict(lr=1e-5))
train_dataloader = dict(global_batch_size=32)
default_hooks = dict(checkpoint=dict(save_best='gqa/accuracy', rule='greater'))
find_unused_parameters = True  # the image stream of the last layer
