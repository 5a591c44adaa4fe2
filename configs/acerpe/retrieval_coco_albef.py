# ALBEF itself on COCO: the layout of albef_4m.py, the recipe of retrieval_coco.py. Its authors'
# file mscoco.pth is converted and tested, or a pre-trained one converted and fine-tuned.
#   python tools/model_converters/albef.py mscoco.pth work_dirs/albef/retrieval_coco.pth \
#       --config configs/acerpe/retrieval_coco_albef.py
#   python tools/test.py configs/acerpe/retrieval_coco_albef.py \
#       work_dirs/albef/retrieval_coco.pth
_base_ = ['./retrieval_coco.py', '../_base_/models/albef_layout.py']

model = dict(
    _base_.albef_layout, heads=dict(itc=dict(type='ITCHead', temperature=0.07), ace=None)
)
load_from = 'work_dirs/albef/retrieval_coco.pth'
