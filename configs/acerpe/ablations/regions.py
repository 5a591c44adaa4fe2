# Does a position help a fusion encoder that learns relations without one? As places.py, but on
# regions that enter it with their coordinates; rows differ in the position alone, or also lack the
# contrast of anchors. No table of the paper.
_base_ = './places.py'

title = 'The position of a fusion encoder that knows where regions are'
group = 'acerpe_regions'
reference = 'ace_rpe'

configs = 'configs/acerpe/'
anchors = 'model.heads.anchors'
presets = dict(
    shapes=dict(
        stages=dict(
            contrast=dict(config=configs + 'contrast_shapes_regions.py', takes=[anchors]),
            pretrain=dict(
                config=configs + 'pretrain_shapes_regions.py',
                takes=['model.backbone.position', anchors],
            ),
            skills=dict(config=configs + 'skills_shapes_regions.py'),
        ),
    ),
)
no_anchors = dict(anchors=None)
rows = dict(
    anchor_ape=dict(
        override=dict(
            model=dict(
                backbone=dict(
                    position=dict(_delete_=True, type='AnchorAbsolutePosition', groups=4)
                )
            )
        ),
    ),
    none_alone=dict(
        override=dict(
            model=dict(
                backbone=dict(position=dict(_delete_=True, type='NoPosition')), heads=no_anchors
            )
        ),
        label='None, without the contrast of anchors',
    ),
    ace_rpe_alone=dict(
        override=dict(model=dict(heads=no_anchors)),
        label='ACE-RPE, without the contrast of anchors',
    ),
)
