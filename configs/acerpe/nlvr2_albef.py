# ALBEF itself on NLVR2, with a copy of each fusion layer for the second image: the layout of
# albef_4m.py, the recipe of nlvr2.py. A pre-trained file is converted and fine-tuned
# (pretrain_model_nlvr.pth has seen the epoch of text assignment), or a fine-tuned one converted and
# tested.
#   python tools/model_converters/albef.py pretrain_model_nlvr.pth work_dirs/albef/nlvr2.pth \
#       --config configs/acerpe/nlvr2_albef.py
#   tools/dist_train.sh configs/acerpe/nlvr2_albef.py 8
_base_ = ['./nlvr2.py', '../_base_/models/albef_layout.py']

model = dict(
    _base_.albef_layout,
    backbone=dict(
        _base_.albef_layout.backbone, fusion=dict(streams='text', share_two_images=False)
    ),
)
load_from = 'work_dirs/albef/nlvr2.pth'
