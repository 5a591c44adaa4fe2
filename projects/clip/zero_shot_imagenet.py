# Zero-shot classification of ImageNet, by the names and templates that you give: see the base.
_base_ = ['./base.py', '../../configs/_base_/datasets/zero_shot_imagenet.py']

loader = _base_.zero_shot.dataloader
pipeline = [*_base_.images, dict(type='PackImageText', fields=('label',))]
test_dataloader = dict(loader, dataset=dict(loader.dataset, pipeline=pipeline))
test_evaluator = _base_.zero_shot.evaluator
test_cfg = dict(type='ZeroShotLoop', templates=_base_.zero_shot.templates, max_words=None)
work_dir = 'work_dirs/clip_zero_shot_imagenet'
