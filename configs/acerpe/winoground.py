# Winoground, two images and two captions of the same words. `python tools/test.py
# configs/acerpe/winoground.py CHECKPOINT` takes those of pretrain_4m.py.
_base_ = ['./pretrain_4m.py', '../_base_/datasets/probes.py']

test_dataloader = _base_.winoground.dataloader
test_evaluator = _base_.winoground.evaluator
test_cfg = dict(type='MinimalPairLoop')
