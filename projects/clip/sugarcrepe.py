# SugarCrepe's pairs of a caption and a hard negative, as they were written.
_base_ = ['./base.py', '../../configs/_base_/datasets/probes.py']

loader = _base_.sugarcrepe.dataloader
pipeline = [*_base_.images, _base_.probe_pipeline[-1]]
test_dataloader = dict(loader, dataset=dict(loader.dataset, max_words=None, pipeline=pipeline))
test_evaluator = _base_.sugarcrepe.evaluator
test_cfg = dict(type='MinimalPairLoop')
work_dir = 'work_dirs/clip_sugarcrepe'
