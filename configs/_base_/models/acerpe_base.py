# ACE-RPE at the paper's size: 163.6M parameters (Sec. 4.1), 66.6M of them in the text encoder,
# 43.8M in the image encoder at 384x384 (43.5M at 256x256) and 53.3M in the fusion encoder. `python
# tools/analysis/get_params.py configs/acerpe/pretrain_4m.py` counts them. The experiment sets the
# initial weights: those of the encoders in pre-training, a checkpoint in fine-tuning.
model = dict(
    type='AlbefPretrainer',
    data_preprocessor=dict(
        type='ImageTextPreprocessor',
        mean=[122.7709, 116.7460, 104.0937],  # CLIP's, as ALBEF uses them
        std=[68.5005, 66.6322, 70.3232],
        tokenizer=dict(pretrained='bert-base-uncased'),
        max_length=25,  # ALBEF, pre-training
    ),
    backbone=dict(
        image_encoder=dict(
            type='ViTImageEncoder', arch='vit_base_patch16_224', image_size=256, depth=6
        ),
        text_encoder=dict(type='BertTextEncoder', num_layers=6),
        position=dict(
            type='AnchorRelativePosition',
            groups=8,  # G
            delta=0.05,  # δ, threshold of an anchor
            tau=1e4,  # τ
            patch_window=3,  # B_p = 9 patches, 3 x 3
            token_window=5,  # B_t = 5 words
            mode='contextual',
        ),
        fusion=dict(
            type='FusionEncoder', depth=6, embed_dims=768, num_heads=12, dropout=0.1,
            streams='both',
        ),
        proj_dims=256,
    ),
    heads=dict(
        ace=dict(type='AnchorHead', scale=2.0, token_scale=2.0, margin=0.05),  # λ, λ, δ
        itm=dict(type='ITMHead'),
        mlm=dict(type='MLMHead', mask_probability=0.15),
        mim=dict(type='MIMHead', block=32, ratio=0.6, source='fusion'),  # SimMIM's
    ),
    queue_length=65536,  # K
    momentum=0.995,  # m, ALBEF
)
