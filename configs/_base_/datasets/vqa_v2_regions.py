# VQA v2 on LXMERT's region features (docs/regions.md), with LXMERT's files of questions:
#
#   data/vqa/{train,nominival,minival,test}.json, trainval_label2ans.json (3,129 answers)
#   data/regions/mscoco      a store of train2014, val2014 and test2015
#
# Trained on train and nominival, validated on minival, which is 5,000 images of val2014; the test
# is test2015, a file for the test server. VQA's own files do as well: VqaDataset with the same
# pipeline and weights='score'.
_base_ = '../loaders.py'

data_root = 'data/'
load_regions = dict(type='LoadRegions', store='data/regions/mscoco')
train_pipeline = [
    load_regions,
    dict(type='PackRegionText', fields=('answers', 'answer_weights')),
]
test_pipeline = [
    load_regions,
    dict(
        type='PackRegionText',
        fields=('question_id', 'answers', 'answer_weights', 'answer_type'),
    ),
]
train_dataloader = dict(
    _base_.region_loaders.train,
    global_batch_size=32,
    dataset=dict(
        type='LxmertQuestionDataset',
        data_root=data_root,
        ann_file=['vqa/train.json', 'vqa/nominival.json'],
        max_words=None,
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    _base_.region_loaders.test,
    batch_size=256,
    dataset=dict(
        type='LxmertQuestionDataset',
        data_root=data_root,
        ann_file='vqa/minival.json',
        max_words=None,
        pipeline=test_pipeline,
        test_mode=True,
    ),
)
test_dataloader = dict(
    val_dataloader, dataset=dict(val_dataloader['dataset'], ann_file='vqa/test.json')
)
val_evaluator = dict(type='SoftAnswerMetric')
test_evaluator = val_evaluator
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
