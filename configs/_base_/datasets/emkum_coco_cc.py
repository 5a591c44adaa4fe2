# EMKUM's training pairs: COCO with Karpathy's splits (train and restval), 566,747 pairs, and parts
# of CC3M (1,516,133) and CC12M (1,181,988) as they could be downloaded; yours will differ. ALBEF's
# lists (docs/data.md), without COCO's val and test images:
#
# data/
#   albef/{coco,cc3m_train,cc12m}.json       [{"image": "coco/…jpg", "caption": "…"}, …]
#   pretrain/{coco,cc3m,cc12m}/…jpg          the images
#   karpathy/dataset_{coco,flickr30k}.json   for the test, with coco/ and flickr30k/images/
_base_ = '../loaders.py'

image_size = 224
crop = [
    dict(type='AlbefAugment', size=image_size, scale=(0.9, 1.0), num_ops=0),
    dict(type='RandomFlip'),  # not where the caption says left or right; published: always half
]
jitter = dict(type='ColorJitter', brightness=0.4, contrast=0.4, saturation=0.4)  # BEiT's
test_pipeline = [
    dict(type='LoadImage'),
    dict(type='ResizeImage', size=image_size),
    dict(type='PackImageText'),
]
train_dataloader = dict(
    _base_.image_loaders.train,
    global_batch_size=512,
    dataset=dict(
        type='AlbefJsonDataset',
        captions='each',
        data_root='data/',
        data_prefix=dict(image='pretrain'),
        ann_file=['albef/coco.json', 'albef/cc3m_train.json', 'albef/cc12m.json'],
        max_words=None,  # as written: the byte pairs know capitals and punctuation
        pipeline=[
            dict(type='LoadImage'),
            dict(type='TwoViews', transforms=crop, teacher_transforms=[jitter, *crop]),
            dict(type='PackImageText'),
        ],
    ),
)
test_dataloader = dict(  # COCO's 5K test images
    _base_.image_loaders.test,
    batch_size=64,
    dataset=dict(
        type='KarpathyDataset',
        data_root='data/',
        data_prefix=dict(image='coco'),
        ann_file='karpathy/dataset_coco.json',
        split='test',
        max_words=None,
        pipeline=test_pipeline,
        test_mode=True,
    ),
)
test_evaluator = dict(type='RetrievalMetric')
flickr30k_dataloader = dict(  # 1K test images
    test_dataloader,
    dataset=dict(
        test_dataloader['dataset'],
        data_prefix=dict(image='flickr30k/images'),
        ann_file='karpathy/dataset_flickr30k.json',
    ),
)
