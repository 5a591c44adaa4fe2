# As nlvr1.py, with the image cut into two halves: the layout of NLVR2. The cut goes through the
# middle box.
_base_ = './nlvr1.py'

image_size = 80  # a half is twice as wide as a box
two_halves = [
    dict(type='SplitImage', parts=2, share=0.5),
    dict(type='ResizeImage', size=image_size),
    dict(type='PackImageText', fields=_base_.fields),
]
model = dict(backbone=dict(image_encoder=dict(image_size=image_size)))
train_dataloader = dict(
    dataset=dict(pipeline=[dict(type='LoadImage'), dict(type='RandomFlip'), *two_halves])
)
test_dataloader = dict(dataset=dict(pipeline=[dict(type='LoadImage'), *two_halves]))
