# The model that all configs of this folder test. Name another one by the environment variable CLIP.
_base_ = '../../configs/_base_/default_runtime.py'

custom_imports = dict(imports=['projects.clip.clip'])
pretrained = '{{$CLIP:openai/clip-vit-base-patch32}}'
model = dict(type='PretrainedCLIP', pretrained=pretrained)
images = [dict(type='LoadImage'), dict(type='CLIPImage', pretrained=pretrained)]
