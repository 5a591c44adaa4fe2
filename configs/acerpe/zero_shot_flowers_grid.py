# Zero-shot classification of photographs of flowers in five classes, by the vectors of
# pretrain_flickr8k_grid.py: `python tools/test.py configs/acerpe/zero_shot_flowers_grid.py
# work_dirs/pretrain_flickr8k_grid/epoch_3.pth`. The features of flowers are computed for the test.
_base_ = ['./pretrain_flickr8k_grid.py', '../_base_/datasets/zero_shot_flowers.py']

pipeline = [
    _base_.test_dataloader.dataset.pipeline[0],
    dict(type='PackRegionText', fields=('label',)),
]
test_cfg = dict(_delete_=True, **_base_.zero_shot)
test_cfg['dataloader'].update(collate_fn=dict(type='xmodal.stack_regions'))
test_cfg['dataloader']['dataset'].update(pipeline=pipeline)
