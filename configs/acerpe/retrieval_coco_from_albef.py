# ACE-RPE added in fine-tuning alone, to ALBEF as released (the paper's first limitation). Its W
# starts at 0, so that the first step equals ALBEF's.
#
#   python tools/model_converters/albef.py ALBEF_4M.pth work_dirs/albef/retrieval_coco.pth \
#       --config configs/acerpe/retrieval_coco_from_albef.py
#   tools/dist_train.sh configs/acerpe/retrieval_coco_from_albef.py 8
#
# ALBEF without it, to compare with: the same with
#   --cfg-options model.backbone.position._delete_=True model.backbone.position.type=NoPosition
_base_ = ['./retrieval_coco.py', '../_base_/models/albef_layout.py']

model = dict(
    # ALBEF's layout, but for the position
    data_preprocessor=_base_.albef_layout.data_preprocessor,
    backbone=dict(
        image_encoder=_base_.albef_layout.backbone.image_encoder,
        fusion=_base_.albef_layout.backbone.fusion,
    ),
    heads=dict(itc=dict(type='ITCHead', temperature=0.07), ace=None),
)
load_from = 'work_dirs/albef/retrieval_coco.pth'
