# ALBEF itself on RefCOCO+: the layout of albef_4m.py, the recipe of grounding_refcoco_plus.py. Its
# authors' file refcoco.pth is converted and tested, or a pre-trained one converted and fine-tuned.
#   python tools/model_converters/albef.py refcoco.pth work_dirs/albef/grounding_refcoco_plus.pth \
#       --config configs/acerpe/grounding_refcoco_plus_albef.py
#   python tools/test.py configs/acerpe/grounding_refcoco_plus_albef.py \
#       work_dirs/albef/grounding_refcoco_plus.pth
_base_ = ['./grounding_refcoco_plus.py', '../_base_/models/albef_layout.py']

model = dict(
    _base_.albef_layout, heads=dict(itc=dict(type='ITCHead', temperature=0.07), ace=None)
)
load_from = 'work_dirs/albef/grounding_refcoco_plus.pth'
