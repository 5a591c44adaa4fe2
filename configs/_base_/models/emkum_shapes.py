# EMKUM small enough to learn the embedded world within minutes; the parts are those of
# emkum_base.py. As there the image encoder has learned before, without texts, and the teacher is a
# model of images that training leaves as it is: here both start as the encoder of
# configs/acerpe/encoder_shapes.py. The text encoder starts from random weights.
width = 128
image_encoder = dict(
    type='ViTImageEncoder', arch='vit_base_patch16_224', image_size=96, patch_size=16,
    embed_dim=width, num_heads=4, mlp_ratio=2, depth=3, conv_stem=True,
)
model = dict(
    type='EmkumModel',
    data_preprocessor=dict(
        type='ImageTextPreprocessor',
        mean=[127.5, 127.5, 127.5],
        std=[63.75, 63.75, 63.75],
        tokenizer=dict(pretrained='data/shapes/vocab.txt'),
        max_length=32,
    ),
    image_encoder=image_encoder,
    text_encoder=dict(
        type='BertTextEncoder',
        config=dict(
            vocab_size=128, hidden_size=width, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=2 * width, max_position_embeddings=32, initializer_range=0.06,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        ),
    ),
    shared_block=dict(num_heads=4, feedforward_dims=2 * width, layer_scale=0.2),
    temperature=0.07,
    teacher=dict(type='EncoderTeacher', encoder=image_encoder),
)
