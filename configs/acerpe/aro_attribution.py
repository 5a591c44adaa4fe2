# ARO's VG-Attribution, two attributes exchanged. `python tools/test.py
# configs/acerpe/aro_attribution.py CHECKPOINT` takes those of pretrain_4m.py.
_base_ = ['./pretrain_4m.py', '../_base_/datasets/probes.py']

test_dataloader = _base_.aro_attribution.dataloader
test_evaluator = _base_.aro_attribution.evaluator
test_cfg = dict(type='MinimalPairLoop')
