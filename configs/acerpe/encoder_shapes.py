# Where the image encoder of pretrain_shapes.py starts from, as the paper's starts from ImageNet:
# the objects of the training scenes, each cut out, classified by shape, colour, size and texture.
# It sees no word and no place. A minute or two on two CPU cores.
_base_ = [
    '../_base_/models/acerpe_shapes.py',
    '../_base_/loaders.py',
    '../_base_/default_runtime.py',
]

tags = [
    'disc', 'square', 'triangle', 'ring', 'cross', 'diamond', 'star', 'bar',
    'red', 'orange', 'yellow', 'lime', 'green', 'teal', 'cyan', 'blue', 'navy', 'purple',
    'magenta', 'pink', 'brown', 'olive', 'grey', 'black',
    'small', 'large', 'solid', 'striped', 'dotted',
]
model = dict(
    _delete_=True,
    type='MultiLabelClassifier',
    data_preprocessor=_base_.model.data_preprocessor,
    image_encoder=_base_.model.backbone.image_encoder,
    num_tags=len(tags),
    tiles=2,
)
train_dataloader = dict(
    _base_.small_image_loaders.train,
    global_batch_size=128,
    dataset=dict(
        type='InstanceDataset',
        data_root='data/shapes/',
        ann_file='coco/instances_train.json',
        tags=tags,
        pipeline=[
            dict(type='LoadImage'),
            dict(type='CropObject', size=48, shift=8),  # half of an image: 2 × 2 fill one
            dict(type='PackImageText', fields=('tags',)),
        ],
    ),
)
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=6)
optim_wrapper = dict(
    type='SafeAmpOptimWrapper',
    constructor='NoDecayConstructor',
    optimizer=dict(type='AdamW', lr=1e-3, betas=(0.9, 0.98), weight_decay=0.02),
    clip_grad=dict(max_norm=5.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.02, by_epoch=False, end=50),
    dict(type='CosineAnnealingLR', eta_min=1e-6, by_epoch=True, convert_to_iter_based=True),
]
