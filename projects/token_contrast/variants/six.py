# The same with the head of this project.
_base_ = './five.py'

custom_imports = dict(imports=['projects.token_contrast.token_contrast'])
model = dict(heads=dict(tokens=dict(type='TokenContrastHead')))
