# Table 5, "Feat": RoI-feature regression alone.
_base_ = '../pretrain.py'

model = dict(heads=dict(objects=dict(tasks=['features'])))
