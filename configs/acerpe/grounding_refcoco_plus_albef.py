# ALBEF itself on RefCOCO+: the layout of albef_4m.py, the recipe of grounding_refcoco_plus.py. Its
# authors' file refcoco.pth is converted and tested, or a pre-trained one converted and fine-tuned.
#   python tools/model_converters/albef.py refcoco.pth work_dirs/albef/grounding_refcoco_plus.pth \
#       --config configs/acerpe/grounding_refcoco_plus_albef.py
#   python tools/test.py configs/acerpe/grounding_refcoco_plus_albef.py \
#       work_dirs/albef/grounding_refcoco_plus.pth
_base_ = './grounding_refcoco_plus.py'

model = dict(
    data_preprocessor=dict(tokenizer=dict(add_sep=False)),
    backbone=dict(
        image_encoder=dict(depth=12, arch='deit_base_patch16_224', pos_embed_antialias=False),
        position=dict(_delete_=True, type='NoPosition'),
        fusion=dict(streams='text'),
    ),
    heads=dict(itc=dict(type='ITCHead', temperature=0.07), ace=None),
)
load_from = 'work_dirs/albef/grounding_refcoco_plus.pth'
