# LXMERT pre-training on COCO and Visual Genome with the questions of VQA, GQA and VG-QA: 180K
# images, 9.18M pairs (Sec. 3.2). `tools/dist_train.sh configs/lxmert/pretrain.py 4`;
# docs/regions.md says where the features come from. Masking and losses are the paper's, see
# pretrain_released.py.
_base_ = [
    '../_base_/models/lxmert_base.py',
    '../_base_/datasets/lxmert_pretrain.py',
    '../_base_/schedules/lxmert_pretrain.py',
    '../_base_/default_runtime.py',
]

work_dir = 'work_dirs/lxmert_pretrain'  # other methods have a config of this name
train_dataloader = dict(global_batch_size=256)  # whatever the number of GPUs
custom_hooks = [dict(type='DelayedHeadsHook', epochs=dict(answers=10))]  # P10 + QA10 (Table 4)
find_unused_parameters = True  # the answers' head, which waits
