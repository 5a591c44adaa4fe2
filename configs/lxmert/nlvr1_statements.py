# LXMERT on statements of a grammar about whole drawings of NLVR's `hidden`
# (tools/dataset_converters/nlvr_statements.py), fine-tuned from nlvr1_boxes.py.
_base_ = [
    '../_base_/models/lxmert_nlvr1.py',
    '../_base_/datasets/nlvr1_regions.py',
    '../_base_/schedules/lxmert_shapes.py',
    '../_base_/default_runtime.py',
]

work_dir = 'work_dirs/lxmert_nlvr1_statements'
load_from = 'work_dirs/lxmert_nlvr1_boxes/epoch_1.pth'
load_from_ignore = ['heads.classification']  # of one box; here are three

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=1)
train_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='AlbefReasoningDataset',
        data_root=_base_.data_root,
        ann_file='hidden_statements.json',
        images=1,
        pipeline=_base_.pipeline,
    ),
)
find_unused_parameters = True  # the image stream of the last layer
