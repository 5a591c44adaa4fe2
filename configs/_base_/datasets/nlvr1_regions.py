# NLVR on regions (docs/tasks/reasoning.md): the objects of the drawings by their given boxes, with
# their pixels as features. Each order of the boxes is a sample.
#
#   data/nlvr1/{dev,hidden}.json                    of NLVR's repository
#   data/nlvr1/{dev,hidden}/SPLIT-IDENTIFIER-ORDER.png
#   data/nlvr1/instances.json                       by tools/dataset_converters/nlvr_boxes.py
#   data/nlvr1/crops                                by tools/dataset_converters/extract_regions.py
_base_ = '../loaders.py'

data_root = 'data/nlvr1/'
image_path = '{split}/{split}-{identifier}-{order}.png'
load_regions = dict(
    type='LoadRegions',
    store='data/nlvr1/crops',
    extractor=dict(type='CropExtractor', boxes='data/nlvr1/instances.json', size=8, margin=0.25),
)
pipeline = [
    load_regions,
    dict(type='SplitRegions', parts=3, share=0.25),  # the three boxes
    dict(type='PackRegionText', fields=('label', 'identifier', 'group')),
]
train_dataloader = dict(
    _base_.small_region_loaders.train,
    global_batch_size=64,
    dataset=dict(
        type='NlvrDataset',
        data_root=data_root,
        ann_file='hidden.json',
        image_path=image_path,
        pipeline=pipeline,
    ),
)
test_dataloader = dict(
    _base_.small_region_loaders.test,
    batch_size=100,
    dataset=dict(
        type='NlvrDataset',
        data_root=data_root,
        ann_file='dev.json',
        image_path=image_path,
        pipeline=pipeline,
        test_mode=True,
    ),
)
test_evaluator = dict(type='ReasoningMetric')
test_cfg = dict(type='TestLoop')
