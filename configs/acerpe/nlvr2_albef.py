# ALBEF itself on NLVR2, with a copy of each fusion layer for the second image: the layout of
# albef_4m.py, the recipe of nlvr2.py. A pre-trained file is converted and fine-tuned
# (pretrain_model_nlvr.pth has seen the epoch of text assignment), or a fine-tuned one converted and
# tested.
#   python tools/model_converters/albef.py pretrain_model_nlvr.pth work_dirs/albef/nlvr2.pth \
#       --config configs/acerpe/nlvr2_albef.py
#   tools/dist_train.sh configs/acerpe/nlvr2_albef.py 8
_base_ = './nlvr2.py'

model = dict(
    data_preprocessor=dict(tokenizer=dict(add_sep=False)),
    backbone=dict(
        image_encoder=dict(depth=12, arch='deit_base_patch16_224', pos_embed_antialias=False),
        position=dict(_delete_=True, type='NoPosition'),
        fusion=dict(streams='text', share_two_images=False),
    ),
)
load_from = 'work_dirs/albef/nlvr2.pth'
