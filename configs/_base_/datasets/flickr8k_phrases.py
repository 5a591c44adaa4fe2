# Phrases of Flickr30k Entities on the dev part of your Flickr8k (docs/tasks/grounding.md), as a
# test. The boxes to choose from are those of the phrases of the image.
#
#   data/flickr8k/entities_mini.json
#   data/flickr8k/images/*.jpg
_base_ = '../loaders.py'

image_size = 112
test_dataloader = dict(
    _base_.small_image_loaders.test,
    batch_size=50,
    dataset=dict(
        type='PhraseListDataset',
        data_root='data/flickr8k/',
        data_prefix=dict(image='images'),
        ann_file='entities_mini.json',
        split='dev',
        split_key='f8k_split',  # the file has Flickr30K's split too
        pipeline=[
            dict(type='LoadImage'),
            dict(type='ResizeImage', size=image_size),
            dict(
                type='PackImageText',
                fields=('ref_id', 'sent_id', 'split', 'size', 'box', 'proposals'),
            ),
        ],
        test_mode=True,
    ),
)
test_evaluator = dict(type='GroundingMetric')
test_cfg = dict(type='GroundingLoop')
