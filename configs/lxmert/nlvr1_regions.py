# LXMERT on NLVR's human statements, fine-tuned from nlvr1_statements.py. Trained on `hidden`,
# tested on `dev`: minutes on one CPU core.
_base_ = [
    '../_base_/models/lxmert_nlvr1.py',
    '../_base_/datasets/nlvr1_regions.py',
    '../_base_/schedules/lxmert_shapes.py',
    '../_base_/default_runtime.py',
]

work_dir = 'work_dirs/lxmert_nlvr1_regions'
load_from = 'work_dirs/lxmert_nlvr1_statements/epoch_1.pth'

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=1)  # each statement in six orders
train_dataloader = dict(global_batch_size=32)
optim_wrapper = dict(optimizer=dict(lr=4e-4))
find_unused_parameters = True  # the image stream of the last layer
