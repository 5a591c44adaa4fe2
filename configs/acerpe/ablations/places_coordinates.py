# Does a position help a fusion encoder that learns relations without one, on patches? As places.py,
# but patches enter fusion with their coordinates, and it trains twice as long. Rows differ in the
# position alone. No table of the paper.
_base_ = './places.py'

title = 'The position of a fusion encoder that knows where patches are'
group = 'acerpe_places_coordinates'

options = {
    'model.backbone.fusion.coordinates': True,
    # Position and coordinates start anew: the contrast has trained neither.
    'load_from_ignore': ['backbone.position', 'backbone.fusion.coordinates'],
    'train_cfg.max_epochs': 16,
    'param_scheduler.1.begin': 12,
}
presets = dict(shapes=dict(stages=dict(pretrain=dict(options=options))))
