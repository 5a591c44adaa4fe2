"""A config of each family of models, and what makes its model tiny."""

WIDTH = 32
BLOCKS = dict(embed_dims=WIDTH, num_heads=2, depth=1, feedforward_dims=WIDTH)
IMAGES = dict(image_size=32, patch_size=8, embed_dim=WIDTH, num_heads=2, depth=1, pretrained=False)
BERT = dict(hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=2, intermediate_size=WIDTH)
_LXMERT = {
    'model.backbone.image_encoder': BLOCKS,
    'model.backbone.fusion': BLOCKS,
    'model.backbone.text_encoder.config': BERT,
}
# ACE-RPE's is the fixture tiny_config.
FAMILIES = {
    'emkum': (
        'configs/emkum/tte_post_shapes.py',
        {
            'model.image_encoder': IMAGES,
            'model.teacher.encoder': IMAGES,
            'model.text_encoder.config': BERT,
            'model.shared_block': dict(num_heads=2, feedforward_dims=WIDTH),
            'train_dataloader.dataset.pipeline.1.transforms.0.size': WIDTH,
        },
    ),
    # As its configs of photographs; the best checkpoint is saved with the metrics.
    'sgraf': (
        'configs/temde/saf_temde_shapes.py',
        {'default_hooks.checkpoint': dict(save_best='rsum', rule='greater')},
    ),
    'lxmert': ('configs/lxmert/pretrain_shapes.py', _LXMERT),
    'vqa': ('configs/lxmert/vqa_shapes.py', _LXMERT),
}
