# Weakly supervised grounding of phrases on your own Flickr8k by the similarities of words and cells
# that retrieval_flickr8k_grid.py trains on captions, without boxes. There is nothing to train:
#   python tools/test.py configs/acerpe/grounding_flickr8k_grid.py \
#       work_dirs/retrieval_flickr8k_grid/epoch_2.pth
_base_ = [
    '../_base_/models/photographs_grid.py',
    '../_base_/datasets/flickr8k_phrases.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(position=dict(type='AnchorRelativePosition', groups=4)),
    heads=dict(itc=dict(type='ITCHead'), itm=dict(type='ITMHead')),
)
pipeline = [
    dict(type='LoadRegions', store='data/flickr8k/lite0_lite2'),
    dict(
        type='PackRegionText', fields=('ref_id', 'sent_id', 'split', 'size', 'box', 'proposals')
    ),
]
test_dataloader = dict(
    collate_fn=dict(type='xmodal.stack_regions'), dataset=dict(pipeline=pipeline)
)
test_cfg = dict(maps='similarity')
