# The embedded world as LXMERT's pre-training data, `python tools/make_shapes.py --out data/shapes`:
# 8 regions an image, 259 wide, with 8 objects and 48 attributes; captions, and questions in VQA's
# and GQA's form with the 161 answers of data/shapes/lxmert/answer_list.json.
_base_ = '../loaders.py'

data_root = 'data/shapes/'
pipeline = [
    dict(type='LoadRegions', store='data/shapes/regions/store'),
    dict(type='PackRegionText', fields=('answers', 'answer_weights')),
]
train_dataloader = dict(
    _base_.small_region_loaders.train,
    global_batch_size=64,
    dataset=dict(
        type='LxmertPretrainDataset',
        data_root=data_root,
        ann_file='lxmert/train.json',
        max_words=50,  # without the marks, which the grammar's vocabulary lacks
        pipeline=pipeline,
    ),
)
