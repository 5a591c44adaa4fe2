# The first stage of pretrain_shapes_regions.py: the encoders alone, by ITC and by the contrast of
# words and regions that makes anchors. The image encoder is LXMERT's of regions with boxes. From
# random weights, two minutes on one CPU core.
_base_ = [
    '../_base_/models/acerpe_shapes.py',
    '../_base_/datasets/shapes_regions.py',
    '../_base_/schedules/lxmert_shapes.py',
    '../_base_/default_runtime.py',
]

width = 128
model = dict(
    data_preprocessor=dict(
        _delete_=True,
        type='RegionTextPreprocessor',
        tokenizer=dict(pretrained='data/shapes/vocab.txt'),
        max_length=32,
    ),
    backbone=dict(
        image_encoder=dict(
            _delete_=True, type='ObjectEncoder', feature_dims=259, embed_dims=width, depth=1,
            num_heads=4, feedforward_dims=2 * width, dropout=0.0,
        ),
        image_pooling=dict(type='MeanMaxPooling'),  # regions have no [CLS]
        fusion=dict(coordinates=True),
    ),
    heads=dict(
        anchors=dict(type='AnchorContrastHead', groups=4), ace=None, itm=None, mlm=None, mim=None,
    ),
)
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=2)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.02, by_epoch=False, end=50),
    dict(
        type='CosineAnnealingLR', eta_min=1e-5, begin=1, by_epoch=True,
        convert_to_iter_based=True,
    ),
]
find_unused_parameters = True  # the fusion encoder
