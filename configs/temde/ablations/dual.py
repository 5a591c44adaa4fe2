# T-EMDE as the pooling of a dual encoder, beside others. No table of the paper.
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
}

paper_columns = []
rows = dict(
    dual_mean=dict(label='mean'),
    dual_max=dict(label='max'),
    dual_gpo=dict(label='GPO'),
    dual_emde=dict(label='EMDE, static'),
    dual_temde=dict(label='T-EMDE'),
)
