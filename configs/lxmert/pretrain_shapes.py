# LXMERT on the embedded world: all five tasks from random weights, minutes on two CPU cores.
_base_ = [
    '../_base_/models/lxmert_shapes.py',
    '../_base_/datasets/lxmert_pretrain_shapes.py',
    '../_base_/schedules/lxmert_shapes.py',
    '../_base_/default_runtime.py',
]

work_dir = 'work_dirs/lxmert_pretrain_shapes'
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=4)
# Answers from the start, as the released code: it takes epochs to find what is asked about.
find_unused_parameters = True  # the image stream of the last layer, without objects to predict
