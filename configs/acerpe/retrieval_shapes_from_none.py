# ACE-RPE added in fine-tuning alone, on the embedded world: pre-trained without any position. Its W
# starts at 0, so that the first step equals the pre-trained model's.
#
#   python tools/train.py configs/acerpe/pretrain_shapes.py \
#       --work-dir work_dirs/pretrain_shapes_none \
#       --cfg-options model.backbone.position._delete_=True model.backbone.position.type=NoPosition
#   python tools/train.py configs/acerpe/retrieval_shapes_from_none.py
#
# `python tools/ablate.py acerpe/finetune_only` compares it, over seeds, with ACE-RPE in neither and
# in both.
_base_ = './retrieval_shapes.py'

load_from = 'work_dirs/pretrain_shapes_none/epoch_9.pth'
