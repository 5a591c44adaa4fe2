# ALBEF itself on SNLI-VE: the layout of albef_4m.py, the recipe of snli_ve.py. A pre-trained file
# is converted and fine-tuned, or a fine-tuned one converted and tested.
#   python tools/model_converters/albef.py ALBEF.pth work_dirs/albef/snli_ve.pth \
#       --config configs/acerpe/snli_ve_albef.py
#   tools/dist_train.sh configs/acerpe/snli_ve_albef.py 8
_base_ = './snli_ve.py'

model = dict(
    data_preprocessor=dict(tokenizer=dict(add_sep=False)),
    backbone=dict(
        image_encoder=dict(depth=12, arch='deit_base_patch16_224', pos_embed_antialias=False),
        position=dict(_delete_=True, type='NoPosition'),
        fusion=dict(streams='text'),
    ),
)
load_from = 'work_dirs/albef/snli_ve.pth'
