# ALBEF itself on VQA v2: the layout of albef_4m.py, the recipe of vqa_v2.py. Its authors' file
# vqa.pth is converted and tested, or a pre-trained one converted and fine-tuned.
#   python tools/model_converters/albef.py vqa.pth work_dirs/albef/vqa_v2.pth \
#       --config configs/acerpe/vqa_v2_albef.py
#   python tools/test.py configs/acerpe/vqa_v2_albef.py \
#       work_dirs/albef/vqa_v2.pth
_base_ = './vqa_v2.py'

model = dict(
    data_preprocessor=dict(tokenizer=dict(add_sep=False)),
    backbone=dict(
        image_encoder=dict(depth=12, arch='deit_base_patch16_224', pos_embed_antialias=False),
        position=dict(_delete_=True, type='NoPosition'),
        fusion=dict(streams='text'),
    ),
)
load_from = 'work_dirs/albef/vqa_v2.pth'
