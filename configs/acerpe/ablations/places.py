# Can a position tell left from right? Each row has the same two stages, a contrast and then fusion,
# with the same objectives, those of pretrain_shapes_anchored.py; rows differ in the position of the
# fusion encoder alone. No table of the paper.
title = 'The position of the fusion encoder, where places count'
group = 'acerpe_places'
reference = 'anchor_ape'

presets = dict(
    shapes=dict(
        label='on the embedded world',
        stages=dict(
            contrast=dict(config='configs/acerpe/contrast_shapes_anchored.py', takes=[]),
            pretrain=dict(
                config='configs/acerpe/pretrain_shapes_anchored.py', after='contrast',
                takes=['model.backbone.position'],
                # The position starts anew: the contrast has not trained it.
                options={'load_from_ignore': ['backbone.position']},
            ),
            skills=dict(tests='pretrain', config='configs/acerpe/skills_shapes_anchored.py'),
        ),
    ),
)
columns = {
    'shapes': {
        'relation': ('skills', 'fusion/relation'),
        'binding': ('skills', 'fusion/binding'),
        'attribute': ('skills', 'fusion/attribute'),
        'object': ('skills', 'fusion/object'),
        'count': ('skills', 'fusion/count'),
        'by vectors: mean recall': ('pretrain', 'first_stage/mean_recall'),
        're-ranked: TR@1': ('pretrain', 'i2t/R@1'),
        're-ranked: IR@1': ('pretrain', 't2i/R@1'),
        're-ranked: mean recall': ('pretrain', 'mean_recall'),
    },
}
paper_columns = []

rows = dict(
    none=dict(
        override=dict(model=dict(backbone=dict(position=dict(_delete_=True, type='NoPosition')))),
        label='None',
    ),
    anchor_ape=dict(label='APE through anchors'),
    ape=dict(
        override=dict(
            model=dict(backbone=dict(position=dict(_delete_=True, type='AbsolutePosition')))
        ),
        label='APE',
    ),
    rpe=dict(
        override=dict(
            model=dict(backbone=dict(position=dict(_delete_=True, type='RelativePosition')))
        ),
        label='RPE',
    ),
    uniform=dict(
        override=dict(model=dict(backbone=dict(position=dict(type='UniformPosition')))),
        label='Uniform',
    ),
    ace_rpe=dict(
        override=dict(model=dict(backbone=dict(position=dict(type='AnchorRelativePosition')))),
        label='ACE-RPE',
    ),
)
