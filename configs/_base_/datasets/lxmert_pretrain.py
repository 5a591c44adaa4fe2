# LXMERT's pre-training data (docs/regions.md): captions of COCO and Visual Genome, questions of
# VQA v2, GQA and Visual Genome, about 180 thousand images with 9.18 million sentences (Table 1).
#
#   data/lxmert/{mscoco_train,mscoco_nominival,vgnococo,mscoco_minival}.json
#   data/regions/{mscoco,vg_gqa}      stores, made by tools/dataset_converters/regions.py
#
# 36 regions an image, 2,048 wide, with 1,600 objects and 400 attributes.
_base_ = '../loaders.py'

data_root = 'data/'
pipeline = [
    dict(type='LoadRegions', store=['data/regions/mscoco', 'data/regions/vg_gqa']),
    dict(type='PackRegionText', fields=('answers', 'answer_weights')),
]
train_dataloader = dict(
    _base_.region_loaders.train,
    global_batch_size=256,
    dataset=dict(
        type='LxmertPretrainDataset',
        data_root=data_root,
        ann_file=[
            'lxmert/mscoco_train.json',
            'lxmert/mscoco_nominival.json',
            'lxmert/vgnococo.json',
        ],
        pipeline=pipeline,
    ),
)
