# Does a position help a fusion encoder that learns relations without one, on patches? As places.py,
# but patches enter fusion with their coordinates, and it trains twice as long. Rows differ in the
# position alone. No table of the paper.
_base_ = './places.py'

title = 'The position of a fusion encoder that knows where patches are'

presets = dict(
    shapes=dict(
        stages=dict(
            _delete_=True,
            contrast=_base_.presets.shapes.stages.contrast,
            coordinates=dict(
                config='configs/acerpe/pretrain_shapes_anchored.py',
                after='contrast',
                takes=['model.backbone.position'],
                options={
                    'model.backbone.fusion.coordinates': True,
                    # Position and coordinates start anew: the contrast has trained neither.
                    'load_from_ignore': ['backbone.position', 'backbone.fusion.coordinates'],
                    'train_cfg.max_epochs': 16,
                    'param_scheduler.1.begin': 12,
                },
            ),
            skills_coordinates=dict(
                tests='coordinates', config='configs/acerpe/skills_shapes_anchored.py'
            ),
        ),
    ),
)
columns = {
    'shapes': {
        '_delete_': True,
        'relation': ('skills_coordinates', 'fusion/relation'),
        'binding': ('skills_coordinates', 'fusion/binding'),
        'attribute': ('skills_coordinates', 'fusion/attribute'),
        'object': ('skills_coordinates', 'fusion/object'),
        'count': ('skills_coordinates', 'fusion/count'),
        'by vectors: mean recall': ('coordinates', 'first_stage/mean_recall'),
        're-ranked: TR@1': ('coordinates', 'i2t/R@1'),
        're-ranked: IR@1': ('coordinates', 't2i/R@1'),
        're-ranked: mean recall': ('coordinates', 'mean_recall'),
    },
}
