# Visual reasoning on NLVR: a statement about three boxes of coloured shapes, side by side in one
# synthetic picture of 400 x 100 (docs/tasks/reasoning.md). Each order of the boxes is a sample.
#
#   data/nlvr1/{dev,hidden}.json                    of NLVR's repository
#   data/nlvr1/{dev,hidden}/SPLIT-IDENTIFIER-ORDER.png
#
# NLVR's train split has 74,460 pictures; `hidden`, published in 2022, has 5,910: few enough for two
# CPU cores to train on, and `dev` stays the test. Scores are no entries for NLVR's leaderboard.
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
    global_batch_size=32,
    num_workers=1,
    persistent_workers=True,
    drop_last=True,
    sampler=dict(type='EpochSampler'),
    collate_fn=dict(type='xmodal.stack_images'),
    dataset=dict(
        type='NlvrDataset',
        data_root=data_root,
        ann_file='hidden.json',
        image_path=image_path,
        pipeline=train_pipeline,
    ),
)
test_dataloader = dict(
    batch_size=100,
    num_workers=1,
    sampler=dict(type='DefaultSampler', shuffle=False, round_up=False),
    collate_fn=dict(type='xmodal.stack_images'),
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
