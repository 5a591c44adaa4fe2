# EMKUM at the published size: 132M parameters without the teacher. Both encoders are the first six
# blocks of data2vec 2.0 base, counted over the whole list (the image model's first two are called
# "prenet" in its files). docs/emkum.md says how to convert the weights, data/data2vec2/….
model = dict(
    type='EmkumModel',
    data_preprocessor=dict(
        type='ImageTextPreprocessor',
        mean=[123.675, 116.28, 103.53],  # ImageNet's
        std=[58.395, 57.12, 57.375],
        tokenizer=dict(pretrained='roberta-base', family='roberta'),  # GPT-2's byte pairs
        max_length=64,
    ),
    image_encoder=dict(
        type='ViTImageEncoder', arch='vit_base_patch16_224', image_size=224, depth=6,
        post_norm=True,
    ),
    text_encoder=dict(type='BertTextEncoder', config='data/data2vec2/text', num_layers=6),
    shared_block=dict(num_heads=12, layer_scale=0.2),
    temperature=0.07,
    # BEiT-2, self-supervised (not fine-tuned): its layers share one table of relative positions.
    teacher=dict(
        type='TimmTeacher', arch='beitv2_base_patch16_224', global_pool='token',
        use_rel_pos_bias=False, use_shared_rel_pos_bias=True,
        pretrained='data/beitv2_base_patch16_224_pt1k.pth',
    ),
)
