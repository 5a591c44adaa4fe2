# ARO's COCO Order, a caption among four other orders of its words. `python tools/test.py
# configs/acerpe/aro_order.py CHECKPOINT` takes those of pretrain_4m.py.
_base_ = ['./pretrain_4m.py', '../_base_/datasets/probes.py']

test_dataloader = _base_.aro_order.dataloader
test_evaluator = _base_.aro_order.evaluator
test_cfg = dict(type='MinimalPairLoop')
