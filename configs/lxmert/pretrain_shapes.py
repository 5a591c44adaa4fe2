# LXMERT on the embedded world: all five tasks from random weights, minutes on two CPU cores.
_base_ = [
    '../_base_/models/lxmert_shapes.py',
    '../_base_/datasets/lxmert_pretrain_shapes.py',
    '../_base_/schedules/lxmert_shapes.py',
    '../_base_/default_runtime.py',
]

work_dir = 'work_dirs/lxmert_pretrain_shapes'
train_cfg = dict(type='ExactEpochTrainLoop', max_epochs=2)
train_dataloader = dict(global_batch_size=256)
# Answers in the second half, as P10 + QA10.
custom_hooks = [dict(type='HeadStartHook', epochs=dict(answers=1))]
find_unused_parameters = True  # the answers' head, which waits
