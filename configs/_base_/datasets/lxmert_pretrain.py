# LXMERT's pre-training data (docs/regions.md): captions of COCO and Visual Genome, questions of
# VQA v2, GQA and Visual Genome, about 180 thousand images with 9.18 million sentences (Table 1).
#
#   data/lxmert/{mscoco_train,mscoco_nominival,vgnococo,mscoco_minival}.json
#   data/regions/{mscoco,vg_gqa}      stores, made by tools/dataset_converters/regions.py
#
# 36 regions an image, 2,048 wide, with 1,600 objects and 400 attributes.
data_root = 'data/'
pipeline = [
    dict(type='LoadRegions', store=['data/regions/mscoco', 'data/regions/vg_gqa']),
    dict(type='PackRegionText', fields=('answers', 'answer_weights')),
]
train_dataloader = dict(
    global_batch_size=256,
    num_workers=4,
    persistent_workers=True,
    pin_memory=True,
    drop_last=True,
    sampler=dict(type='EpochSampler'),
    collate_fn=dict(type='xmodal.stack_regions'),
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
