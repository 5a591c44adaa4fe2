# T-EMDE as the pooling of a dual encoder, compared with others. No table of the paper.
_base_ = '../../_base_/ablations/temde.py'

title = 'Dual encoders: the pooling'
reference = 'dual_temde'

columns = {
    'shapes': {
        'TR@1': ('dual', 'i2t/R@1'),
        'IR@1': ('dual', 't2i/R@1'),
        'rsum': ('dual', 'rsum'),
    },
    'f30k': {
        'F30K TR@1': ('dual', 'i2t/R@1'),
        'F30K IR@1': ('dual', 't2i/R@1'),
        'F30K rsum': ('dual', 'rsum'),
    },
    'flickr8k': {
        'TR@1': ('dual', 'i2t/R@1'),
        'IR@1': ('dual', 't2i/R@1'),
        'mean recall': ('dual', 'mean_recall'),
    },
}

paper_columns = []
# Image and text are pooled in the same way, but on photographs. N = 16 and K = 8 (2³ for EMDE) are
# those of Sec. 4.3.
mean = dict(_delete_=True, type='MeanPooling')
largest = dict(_delete_=True, type='MaxPooling')
gpo = dict(_delete_=True, type='GPOPooling')
emde = dict(_delete_=True, type='EMDE', partitions=16, bits=3)
temde = dict(_delete_=True, type='TEMDE', partitions=16, centroids=8, inner_dims=8)
rows = dict(
    dual_mean=dict(
        override=dict(model=dict(similarity=dict(image_pooling=mean, text_pooling=mean))),
        label='mean',
    ),
    dual_max=dict(
        override=dict(model=dict(similarity=dict(image_pooling=largest, text_pooling=largest))),
        label='max',
    ),
    dual_gpo=dict(
        override=dict(model=dict(similarity=dict(image_pooling=gpo, text_pooling=gpo))),
        label='GPO',
    ),
    # The static EMDE. The linear layers after it learn; the encoders, which no gradient reaches,
    # stay random projections.
    dual_emde=dict(
        override=dict(
            model=dict(similarity=dict(image_pooling=emde, text_pooling=emde)),
            find_unused_parameters=True,
        ),
        label='EMDE, static',
    ),
    dual_temde=dict(
        override=dict(model=dict(similarity=dict(image_pooling=temde, text_pooling=temde))),
        label='T-EMDE',
    ),
    # On photographs the first row is dual_flickr8k.py as it is. Words are pooled by the mean, which
    # MiniLM was trained for.
    grid_mean_max=dict(preset='flickr8k', label='mean and max'),
    grid_mean=dict(
        preset='flickr8k',
        override=dict(model=dict(similarity=dict(image_pooling=mean))),
        label='mean',
    ),
    grid_max=dict(
        preset='flickr8k',
        override=dict(model=dict(similarity=dict(image_pooling=largest))),
        label='max',
    ),
    grid_gpo=dict(
        preset='flickr8k',
        override=dict(model=dict(similarity=dict(image_pooling=gpo))),
        label='GPO',
    ),
    grid_temde=dict(
        preset='flickr8k',
        override=dict(model=dict(similarity=dict(image_pooling=temde))),
        label='T-EMDE',
    ),
)
