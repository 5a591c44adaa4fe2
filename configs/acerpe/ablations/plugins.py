# Plug-ins of other papers in ACE-RPE's model, from the contrastive stage on: EMKUM's token types
# with LayerScale after both encoders, and T-EMDE's sketches in the place of [CLS]. No table of the
# paper.
_base_ = '../../_base_/ablations/acerpe.py'

title = 'ACE-RPE: with the plug-ins of other papers'
group = 'acerpe_plugins'
reference = 'ace_rpe'

columns = {
    'shapes': {
        'by vectors: mean recall': ('pretrain', 'first_stage/mean_recall'),
        're-ranked: mean recall': ('pretrain', 'mean_recall'),
        'skills by vectors': ('skills', 'vectors/mean'),
        'skills by fusion': ('skills', 'fusion/mean'),
    },
}
paper_columns = []

plugins = [f'model.backbone.{name}' for name in ('token_type', 'image_pooling', 'text_pooling')]
presets = dict(shapes=dict(stages=dict(contrast=dict(takes=plugins))))
model = _base_.overrides.ace_rpe['model']
sketch = dict(type='TEMDE', partitions=16, centroids=8, inner_dims=8)
rows = dict(
    ace_rpe=dict(override=_base_.overrides.ace_rpe, label='as it is'),
    tte_post=dict(
        override=dict(
            model=dict(
                model,
                backbone=dict(
                    token_type=dict(
                        type='TokenTypeEmbedding', position='post_encoder', layer_scale=1e-5
                    )
                ),
            )
        ),
        label='token types, LayerScale',
    ),
    temde=dict(
        override=dict(model=dict(model, backbone=dict(image_pooling=sketch, text_pooling=sketch))),
        label='T-EMDE',
    ),
)
