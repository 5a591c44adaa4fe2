# The embedded run of ACE-RPE with a position from outside the package.
_base_ = '../../configs/acerpe/pretrain_shapes.py'

custom_imports = dict(imports=['projects.similarity_bias.similarity_bias'])
model = dict(backbone=dict(position=dict(_delete_=True, type='SimilarityBias')))
work_dir = 'work_dirs/similarity_bias'  # that of this file's name has the run of `make quickstart`
