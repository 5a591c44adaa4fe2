# Retrieval on Flickr30K, fine-tuned at 384 x 384 (Sec. 4.2; Tables 1 and 3): the 1K test images.
# `tools/dist_train.sh configs/acerpe/retrieval_flickr30k.py 8`
_base_ = [
    '../_base_/models/acerpe_base.py',
    '../_base_/datasets/flickr30k_retrieval.py',
    '../_base_/schedules/finetune_albef_retrieval.py',
    '../_base_/momentum_distillation.py',
    '../_base_/default_runtime.py',
]

model = dict(
    data_preprocessor=dict(max_length=30),
    backbone=dict(image_encoder=dict(image_size=384)),  # its position embedding is resampled
    # As in pre-training, without masked language and image modelling.
    heads=dict(mlm=None, mim=None),
)
load_from = 'work_dirs/pretrain_4m/epoch_30.pth'

# ALBEF's recipe (its Retrieval_flickr.yaml), which Sec. 4.2 follows
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=10)
train_dataloader = dict(global_batch_size=256)
custom_hooks = [_base_.momentum_distillation]
default_hooks = dict(checkpoint=dict(save_best='mean_recall', rule='greater'))
