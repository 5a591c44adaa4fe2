# Visual reasoning on NLVR: a statement about three boxes of coloured shapes, side by side in one
# synthetic image of 400 x 100 (docs/tasks/reasoning.md). Each order of the boxes is a sample.
#
#   data/nlvr1/{dev,hidden}.json                    of NLVR's repository
#   data/nlvr1/{dev,hidden}/SPLIT-IDENTIFIER-ORDER.png
#
# NLVR's train split has 74,460 images; `hidden`, published in 2022, has 5,910: few enough for two
# CPU cores to train on, and `dev` stays the test. Scores are no entries for NLVR's leaderboard.
_base_ = '../loaders.py'

data_root = 'data/nlvr1/'
image_path = '{split}/{split}-{identifier}-{order}.png'
image_size = 64
fields = ('label', 'identifier', 'group')
three_boxes = dict(type='SplitImage', parts=3, share=0.25)
train_pipeline = [
    dict(type='LoadImage'),
    dict(type='RandomFlip'),  # of the whole; not where the statement says left or right
    three_boxes,
    dict(type='ResizeImage', size=image_size),
    dict(type='PackImageText', fields=fields),
]
test_pipeline = [
    dict(type='LoadImage'),
    three_boxes,
    dict(type='ResizeImage', size=image_size),
    dict(type='PackImageText', fields=fields),
]
train_dataloader = dict(
    _base_.small_image_loaders.train,
    global_batch_size=32,
    dataset=dict(
        type='NlvrDataset',
        data_root=data_root,
        ann_file='hidden.json',
        image_path=image_path,
        pipeline=train_pipeline,
    ),
)
test_dataloader = dict(
    _base_.small_image_loaders.test,
    batch_size=100,
    dataset=dict(
        type='NlvrDataset',
        data_root=data_root,
        ann_file='dev.json',
        image_path=image_path,
        pipeline=test_pipeline,
        test_mode=True,
    ),
)
test_evaluator = dict(type='ReasoningMetric')
test_cfg = dict(type='TestLoop')
