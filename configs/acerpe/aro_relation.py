# ARO's VG-Relation, two objects exchanged in a sentence about a relation. `python tools/test.py
# configs/acerpe/aro_relation.py CHECKPOINT` takes those of pretrain_4m.py.
_base_ = ['./pretrain_4m.py', '../_base_/datasets/probes.py']

test_dataloader = _base_.aro_relation.dataloader
test_evaluator = _base_.aro_relation.evaluator
test_cfg = dict(type='MinimalPairLoop')
