# What ALBEF itself has where acerpe_base.py has ACE-RPE's: twelve image blocks, no position, only
# words look at patches, texts without [SEP]. A config merges it: model = dict(_base_.albef_layout).
albef_layout = dict(
    data_preprocessor=dict(tokenizer=dict(add_sep=False)),
    backbone=dict(
        image_encoder=dict(depth=12, arch='deit_base_patch16_224', pos_embed_antialias=False),
        position=dict(_delete_=True, type='NoPosition'),
        fusion=dict(streams='text'),
    ),
)
