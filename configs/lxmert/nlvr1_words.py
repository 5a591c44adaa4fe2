# LXMERT learns words from single boxes of NLVR's `hidden`, by true sentences of a grammar
# (tools/dataset_converters/nlvr_statements.py --boxes --words): masked words, and matching.
_base_ = [
    '../_base_/models/lxmert_nlvr1.py',
    '../_base_/datasets/nlvr1_regions.py',
    '../_base_/schedules/lxmert_shapes.py',
    '../_base_/default_runtime.py',
]

work_dir = 'work_dirs/lxmert_nlvr1_words'
model = dict(
    _delete_=True,
    type='LxmertPretrainer',
    data_preprocessor=_base_.model.data_preprocessor,
    backbone=_base_.model.backbone,
    heads=dict(
        mlm=dict(type='LxmertMLMHead', mask_probability=0.25),
        # Few texts are replaced: their masked words can't be told from the box.
        matching=dict(type='LxmertITMHead', replace_probability=0.25),
    ),
)

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=1)
train_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='LxmertPretrainDataset',
        data_root=_base_.data_root,
        ann_file='hidden_words.json',
        max_words=30,
        pipeline=[
            _base_.load_regions,
            dict(type='SplitRegions', parts=3, share=0.25, only=0),  # the box on the left
            dict(type='PackRegionText', fields=('answers', 'answer_weights')),
        ],
    ),
)
optim_wrapper = dict(optimizer=dict(lr=2e-3))
find_unused_parameters = True  # the image stream of the last layer
