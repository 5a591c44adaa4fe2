# An epoch of text assignment between pre-training and NLVR2 (ALBEF): to which of two images a text
# belongs, or to neither, over the pairs of the 4M set.
#   tools/dist_train.sh configs/acerpe/nlvr2_ta.py 8
_base_ = [
    '../_base_/models/acerpe_base.py',
    '../_base_/datasets/pretrain_4m.py',
    '../_base_/schedules/finetune_albef_tasks.py',
    '../_base_/default_runtime.py',
]

model = dict(
    _delete_=True,
    type='TextAssignmentPretrainer',
    data_preprocessor=_base_.model.data_preprocessor,
    backbone=_base_.model.backbone,
    temperature=0.07,  # of the draw of similar images
)
load_from = 'work_dirs/pretrain_4m/epoch_30.pth'

# As in NLVR_pretrain.yaml: in a single epoch the rate is 2e-5 from the end of the warm-up on.
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=1)
train_dataloader = dict(global_batch_size=512)  # 8 GPUs x 64
