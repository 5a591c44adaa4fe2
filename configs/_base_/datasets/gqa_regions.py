# GQA on LXMERT's region features (docs/regions.md), from GQA's own files:
#
#   data/gqa/{train,val,testdev}_balanced_questions.json
#   data/gqa/trainval_label2ans.json      LXMERT's 1,842 answers
#   data/regions/vg_gqa                   a store of vg_gqa and gqa_testdev
#
# Trained on train and val, validated on testdev, which has images from another source: pre-training
# has seen the questions of val.
_base_ = '../loaders.py'

data_root = 'data/'
load_regions = dict(type='LoadRegions', store='data/regions/vg_gqa')
train_pipeline = [
    load_regions,
    dict(type='PackRegionText', fields=('answers', 'answer_weights')),
]
test_pipeline = [
    load_regions,
    dict(type='PackRegionText', fields=('question_id', 'answers', 'gqa')),
]
train_dataloader = dict(
    _base_.region_loaders.train,
    global_batch_size=32,
    dataset=dict(
        type='GqaDataset',
        data_root=data_root,
        ann_file=['gqa/train_balanced_questions.json', 'gqa/val_balanced_questions.json'],
        max_words=None,
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    _base_.region_loaders.test,
    batch_size=256,
    dataset=dict(
        type='GqaDataset',
        data_root=data_root,
        ann_file='gqa/testdev_balanced_questions.json',
        max_words=None,
        pipeline=test_pipeline,
        test_mode=True,
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='GqaMetric')
test_evaluator = val_evaluator
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
