# Tables 1 and 2 (Sec. 4.4): the global module of SAF, SGR and SGRAF, the mean of their scores.
_base_ = '../../_base_/ablations/temde.py'

title = 'T-EMDE, Tables 1 and 2: the global module of SAF, SGR and SGRAF'

columns = {
    'shapes': {
        'SAF TR@1': ('saf_shapes', 'i2t/R@1'),
        'SAF IR@1': ('saf_shapes', 't2i/R@1'),
        'SAF rsum': ('saf_shapes', 'rsum'),
        'SGR TR@1': ('sgr_shapes', 'i2t/R@1'),
        'SGR IR@1': ('sgr_shapes', 't2i/R@1'),
        'SGR rsum': ('sgr_shapes', 'rsum'),
        'SGRAF TR@1': ('sgraf_shapes', 'i2t/R@1'),
        'SGRAF IR@1': ('sgraf_shapes', 't2i/R@1'),
        'SGRAF rsum': ('sgraf_shapes', 'rsum'),
    },
    'f30k': {
        'F30K SAF TR@1': ('saf', 'i2t/R@1'),
        'F30K SAF IR@1': ('saf', 't2i/R@1'),
        'F30K SAF rsum': ('saf', 'rsum'),
        'F30K SGR TR@1': ('sgr', 'i2t/R@1'),
        'F30K SGR IR@1': ('sgr', 't2i/R@1'),
        'F30K SGR rsum': ('sgr', 'rsum'),
        'F30K SGRAF TR@1': ('sgraf', 'i2t/R@1'),
        'F30K SGRAF IR@1': ('sgraf', 't2i/R@1'),
        'F30K SGRAF rsum': ('sgraf', 'rsum'),
    },
    'coco': {
        '1K SAF TR@1': ('saf', '1k/i2t/R@1'),
        '1K SAF IR@1': ('saf', '1k/t2i/R@1'),
        '1K SAF rsum': ('saf', '1k/rsum'),
        '1K SGR TR@1': ('sgr', '1k/i2t/R@1'),
        '1K SGR IR@1': ('sgr', '1k/t2i/R@1'),
        '1K SGR rsum': ('sgr', '1k/rsum'),
        '1K SGRAF TR@1': ('sgraf', '1k/i2t/R@1'),
        '1K SGRAF IR@1': ('sgraf', '1k/t2i/R@1'),
        '1K SGRAF rsum': ('sgraf', '1k/rsum'),
        '5K SAF TR@1': ('saf', '5k/i2t/R@1'),
        '5K SAF IR@1': ('saf', '5k/t2i/R@1'),
        '5K SGR TR@1': ('sgr', '5k/i2t/R@1'),
        '5K SGR IR@1': ('sgr', '5k/t2i/R@1'),
        '5K SGRAF TR@1': ('sgraf', '5k/i2t/R@1'),
        '5K SGRAF IR@1': ('sgraf', '5k/t2i/R@1'),
    },
}

# rsum is the sum of the six recalls that Table 2 prints; 5K is of Table 1. Self-attention is the
# paper's own training ("reproduced"). It has no SGRAF without a global module.
paper_columns = [
    'F30K SAF TR@1', 'F30K SAF IR@1', 'F30K SAF rsum',
    'F30K SGR TR@1', 'F30K SGR IR@1', 'F30K SGR rsum',
    'F30K SGRAF TR@1', 'F30K SGRAF IR@1', 'F30K SGRAF rsum',
    '1K SAF TR@1', '1K SAF IR@1', '1K SAF rsum', '1K SGR TR@1', '1K SGR IR@1', '1K SGR rsum',
    '1K SGRAF TR@1', '1K SGRAF IR@1', '1K SGRAF rsum',
    '5K SAF TR@1', '5K SAF IR@1', '5K SGR TR@1', '5K SGR IR@1',
    '5K SGRAF TR@1', '5K SGRAF IR@1',
]
self_attention = dict(_delete_=True, type='SelfAttentionGlobal', regions=36)
# The embedded world has 8 regions an image.
self_attention_shapes = dict(
    model=dict(similarity=dict(global_pooling=dict(self_attention, regions=8)))
)
rows = dict(
    noglobal=dict(
        override=dict(model=dict(similarity=dict(global_pooling=None))),
        label='none',
        paper=[
            71.1, 54.1, 481.1, 52.8, 49.6, 441.3, None, None, None,
            76.2, 61.5, 515.7, 76.6, 60.9, 515.8, None, None, None,
            53.7, 39.8, 54.2, 39.3, None, None,
        ],
    ),
    self_attention=dict(
        override=dict(model=dict(similarity=dict(global_pooling=self_attention))),
        stages=dict(
            saf_shapes=self_attention_shapes,
            sgr_shapes=self_attention_shapes,
            sgraf_shapes=self_attention_shapes,
        ),
        label='self-attention',
        paper=[
            74.9, 56.3, 492.0, 76.3, 55.2, 490.3, 77.5, 58.4, 499.5,
            77.2, 62.1, 518.6, 76.9, 61.5, 517.2, 78.9, 63.6, 523.8,
            55.6, 40.3, 55.7, 39.8, 57.9, 41.8,
        ],
    ),
    temde=dict(  # with N and K of Sec. 4.3
        label='T-EMDE',
        paper=[
            75.2, 57.1, 494.1, 77.5, 56.9, 494.2, 78.8, 59.6, 503.1,
            78.3, 62.3, 519.7, 77.1, 61.6, 517.7, 79.6, 63.5, 524.1,
            56.7, 40.3, 57.0, 40.0, 59.1, 41.8,
        ],
    ),
)
