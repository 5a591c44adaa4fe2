# Questions of VQA v2 on a few of COCO's images (docs/tasks/vqa.md), cut into parts by image and
# with a closed list of the answers of the training part:
#
#   data/coco_mini/vqa_v2_mini/{questions,annotations}_{train,test}.json, answer_list.json
#   data/coco_mini/images/000000000025.jpg
_base_ = '../loaders.py'

data_root = 'data/coco_mini/'
data_prefix = dict(image='images')
image_name = '{image_id:012d}.jpg'
image_size = 112
train_pipeline = [
    dict(type='LoadImage'),
    dict(type='AlbefAugment', size=image_size, scale=(0.5, 1.0), num_ops=1),
    dict(type='RandomFlip'),  # not where the question or an answer says left or right
    dict(type='PackImageText', fields=('answers', 'answer_weights')),
]
test_pipeline = [
    dict(type='LoadImage'),
    dict(type='ResizeImage', size=image_size),
    dict(type='PackImageText', fields=('question_id', 'human_answers', 'answer_type')),
]
train_dataloader = dict(
    _base_.small_image_loaders.train,
    global_batch_size=32,
    dataset=dict(
        type='VqaDataset',
        data_root=data_root,
        data_prefix=data_prefix,
        ann_file='vqa_v2_mini/questions_train.json',
        answer_file='vqa_v2_mini/annotations_train.json',
        image_name=image_name,
        pipeline=train_pipeline,
    ),
)
test_dataloader = dict(
    _base_.small_image_loaders.test,
    batch_size=50,
    dataset=dict(
        type='VqaDataset',
        data_root=data_root,
        data_prefix=data_prefix,
        ann_file='vqa_v2_mini/questions_test.json',
        answer_file='vqa_v2_mini/annotations_test.json',
        image_name=image_name,
        pipeline=test_pipeline,
        test_mode=True,
    ),
)
test_evaluator = dict(type='VqaMetric')
test_cfg = dict(type='TestLoop')
