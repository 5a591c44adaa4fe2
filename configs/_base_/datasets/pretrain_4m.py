# ALBEF's pre-training sets: COCO, Visual Genome, SBU and CC3M (docs/data.md says how to get each).
#
# data/
#   albef/{coco,vg,sbu,cc3m_train,cc3m_val}.json     [{"image": "coco/…jpg", "caption": "…"}, …]
#   pretrain/{coco,vg,sbu,cc3m}/…jpg                 the images
_base_ = '../loaders.py'

ann_files_4m = [
    'albef/coco.json',
    'albef/vg.json',
    'albef/sbu.json',
    'albef/cc3m_train.json',
    'albef/cc3m_val.json',
]
train_pipeline = [
    dict(type='LoadImage'),
    dict(type='AlbefAugment', size=256, scale=(0.2, 1.0), num_ops=2, magnitude=7),  # RandAugment
    dict(type='RandomFlip'),  # not where the caption says left or right
    dict(type='PackImageText'),
]
train_dataloader = dict(
    _base_.image_loaders.train,
    global_batch_size=512,
    dataset=dict(
        type='AlbefJsonDataset',
        captions='each',  # 5.1M pairs an epoch, of 4.0M images
        data_root='data/',
        data_prefix=dict(image='pretrain'),
        ann_file=ann_files_4m,
        pipeline=train_pipeline,
    ),
)
