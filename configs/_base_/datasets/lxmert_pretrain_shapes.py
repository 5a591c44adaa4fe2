# The embedded world as LXMERT's pre-training data, `python tools/make_shapes.py --out data/shapes`:
# 8 regions an image, 259 wide, with 8 objects and 48 attributes; captions, and questions in VQA's
# and GQA's form with the 161 answers of data/shapes/lxmert/answer_list.json.
data_root = 'data/shapes/'
pipeline = [
    dict(type='LoadRegions', store='data/shapes/regions/store'),
    dict(type='PackRegionText', fields=('answers', 'answer_weights')),
]
train_dataloader = dict(
    global_batch_size=64,
    num_workers=1,
    persistent_workers=True,
    drop_last=True,
    sampler=dict(type='EpochSampler'),
    collate_fn=dict(type='xmodal.stack_regions'),
    dataset=dict(
        type='LxmertPretrainDataset',
        data_root=data_root,
        ann_file='lxmert/train.json',
        max_words=50,  # without the marks, which the grammar's vocabulary lacks
        pipeline=pipeline,
    ),
)
