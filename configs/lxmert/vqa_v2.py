# LXMERT fine-tuned for VQA v2 (Sec. 4.2): on train and val but for 5,000 images ("minival").
#   python tools/train.py configs/lxmert/vqa_v2.py
_base_ = [
    '../_base_/models/lxmert_base.py',
    '../_base_/datasets/vqa_v2_regions.py',
    '../_base_/schedules/lxmert_finetune.py',
    '../_base_/default_runtime.py',
]

work_dir = 'work_dirs/lxmert_vqa_v2'
model = dict(
    _delete_=True,
    type='LxmertVQA',
    data_preprocessor=_base_.model.data_preprocessor,
    backbone=_base_.model.backbone,
    head=dict(
        type='AnswerTableHead', answer_list='data/vqa/trainval_label2ans.json', loss='bce',  # 3,129
    ),
)
load_from = 'work_dirs/lxmert_pretrain/epoch_20.pth'

train_dataloader = dict(global_batch_size=32)
default_hooks = dict(checkpoint=dict(save_best='vqa/overall', rule='greater'))
find_unused_parameters = True  # the image stream of the last layer
