# LXMERT on true and false statements of a grammar about single boxes of NLVR's `hidden`
# (tools/dataset_converters/nlvr_statements.py --boxes), fine-tuned from nlvr1_words.py.
_base_ = [
    '../_base_/models/lxmert_nlvr1.py',
    '../_base_/datasets/nlvr1_regions.py',
    '../_base_/schedules/lxmert_shapes.py',
    '../_base_/default_runtime.py',
]

work_dir = 'work_dirs/lxmert_nlvr1_boxes'
model = dict(head=dict(images=1))
load_from = 'work_dirs/lxmert_nlvr1_words/epoch_1.pth'

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=1)
train_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='AlbefReasoningDataset',
        data_root=_base_.data_root,
        ann_file='hidden_boxes.json',
        images=1,
        pipeline=[
            _base_.load_regions,
            dict(type='SplitRegions', parts=3, share=0.25, only=0),  # the box on the left
            dict(type='PackRegionText', fields=('label', 'identifier', 'group')),
        ],
    ),
)
find_unused_parameters = True  # the image stream of the last layer
