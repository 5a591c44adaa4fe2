# SugarCrepe, pairs of a caption and a hard negative in seven categories. `python tools/test.py
# configs/acerpe/sugarcrepe.py CHECKPOINT` takes those of pretrain_4m.py.
_base_ = ['./pretrain_4m.py', '../_base_/datasets/probes.py']

test_dataloader = _base_.sugarcrepe.dataloader
test_evaluator = _base_.sugarcrepe.evaluator
test_cfg = dict(type='MinimalPairLoop')
