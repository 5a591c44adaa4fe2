# VSR, true and false statements about places. `python tools/test.py
# configs/acerpe/vsr.py CHECKPOINT` takes those of pretrain_4m.py.
_base_ = ['./pretrain_4m.py', '../_base_/datasets/probes.py']

test_dataloader = _base_.vsr.dataloader
test_evaluator = _base_.vsr.evaluator
test_cfg = dict(type='MinimalPairLoop')
