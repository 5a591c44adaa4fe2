# The embedded run of ACE-RPE with a sixth head from outside the package.
_base_ = '../../configs/acerpe/pretrain_shapes.py'

custom_imports = dict(imports=['projects.token_contrast.token_contrast'])
model = dict(heads=dict(tokens=dict(type='TokenContrastHead')))
work_dir = 'work_dirs/token_contrast'  # that of this file's name has the run of `make quickstart`
