# Which anchors find what words mean? The paper's, and other ways to find them, without a contrast
# that trains them: python tools/ablate.py projects/anchor_variants/ablations/anchors.py
_base_ = '../../../configs/_base_/ablations/acerpe.py'

title = 'Other ways to find anchors'
group = 'anchor_variants'
reference = 'paper'
columns = {
    'shapes': {
        'by vectors: mean recall': ('pretrain', 'first_stage/mean_recall'),
        're-ranked: mean recall': ('pretrain', 'mean_recall'),
        'skills by fusion': ('skills', 'fusion/mean'),
        'binding': ('skills', 'fusion/binding'),
        'relation': ('skills', 'fusion/relation'),
    },
}
paper_columns = []
project = 'projects.anchor_variants.'
presets = dict(
    shapes=dict(
        stages=dict(pretrain=dict(takes=['model', 'load_from_ignore', 'custom_imports'])),
    ),
)

positions = {
    'projected': ('ProjectedAnchors', 'a learned projection'),
    'quantile': ('QuantileAnchors', 'δ as a quantile'),
    'transport': ('TransportAnchors', 'optimal transport'),
}
heads = _base_.without_lace
rows = {
    'paper': dict(override=_base_.overrides.ace_rpe, label='Eq. 3'),
    **{
        name: dict(
            override=dict(
                custom_imports=dict(imports=[project + 'anchor_variants']),
                model=dict(backbone=dict(position=dict(type=kind)), heads=heads),
            ),
            label=label,
        )
        for name, (kind, label) in positions.items()
    },
}
rows['fused'] = dict(
    override=dict(
        custom_imports=dict(imports=[project + 'fused_anchors']),
        model=dict(backbone=dict(fusion=dict(type='ReanchoredFusionEncoder')), heads=heads),
    ),
    label="the previous fusion layer's output",
)
rows['hinted'] = dict(
    override=dict(
        custom_imports=dict(imports=[project + 'box_hints']),
        model=dict(
            heads=dict(
                heads,
                hints=dict(
                    type='BoxHintHead',
                    instances='data/shapes/coco/instances_train.json',
                    share=0.05,
                ),
            )
        ),
    ),
    label='boxes for 5 % of the images',
)
# The first stage has no projections.
rows['projected']['override'].update(load_from_ignore=['backbone.position'])
