# The questions of vqa_coco_mini.py on grid features of a frozen EfficientNet-Lite0, for models that
# score the answers of a table: they learn from the score of each answer, as LXMERT does.
#   data/coco_mini/vqa_v2_mini/all_answers.json     by tools/dataset_converters/vqa_answers.py
#   data/coco_mini/lite0                            by tools/dataset_converters/extract_regions.py
_base_ = '../loaders.py'

data_root = 'data/coco_mini/'
data_prefix = dict(image='images')
image_name = '{image_id:012d}.jpg'
load_regions = dict(type='LoadRegions', store='data/coco_mini/lite0')
train_dataloader = dict(
    _base_.small_region_loaders.train,
    global_batch_size=64,
    dataset=dict(
        type='VqaDataset',
        data_root=data_root,
        data_prefix=data_prefix,
        ann_file='vqa_v2_mini/questions_train.json',
        answer_file='vqa_v2_mini/annotations_train.json',
        image_name=image_name,
        weights='score',
        pipeline=[
            load_regions,
            dict(type='PackRegionText', fields=('answers', 'answer_weights')),
        ],
    ),
)
test_dataloader = dict(
    _base_.small_region_loaders.test,
    batch_size=100,
    dataset=dict(
        type='VqaDataset',
        data_root=data_root,
        data_prefix=data_prefix,
        ann_file='vqa_v2_mini/questions_test.json',
        answer_file='vqa_v2_mini/annotations_test.json',
        image_name=image_name,
        pipeline=[
            load_regions,
            dict(type='PackRegionText', fields=('question_id', 'human_answers', 'answer_type')),
        ],
        test_mode=True,
    ),
)
test_evaluator = dict(type='VqaMetric')
test_cfg = dict(type='TestLoop')
