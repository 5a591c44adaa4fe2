# Table 4 (Sec. 5.2): N partitions and K centroids, SAF, text retrieval. MRR in percent.
_base_ = '../../_base_/ablations/temde.py'

title = 'T-EMDE, Table 4: N partitions, K centroids, SAF'

columns = {
    'shapes': {
        'TR@1': ('saf_shapes', 'i2t/R@1'),
        'TR@10': ('saf_shapes', 'i2t/R@10'),
        'MRR': ('saf_shapes', 'i2t/mrr'),
    },
    'f30k': {
        'TR@1': ('saf', 'i2t/R@1'),
        'TR@10': ('saf', 'i2t/R@10'),
        'MRR': ('saf', 'i2t/mrr'),
    },
}

paper_columns = ['F30K TR@1', 'F30K TR@10', 'F30K MRR']
rows = dict(
    n20_k8=dict(
        override=dict(
            model=dict(
                similarity=dict(global_pooling=dict(pooling=dict(partitions=20, centroids=8)))
            )
        ),
        label='N = 20, K = 8',
        paper=[73.4, 97.1, 82.4],
    ),
    n20_k16=dict(
        override=dict(
            model=dict(
                similarity=dict(global_pooling=dict(pooling=dict(partitions=20, centroids=16)))
            )
        ),
        label='N = 20, K = 16',
        paper=[73.5, 95.6, 82.0],
    ),
    n20_k20=dict(
        override=dict(
            model=dict(
                similarity=dict(global_pooling=dict(pooling=dict(partitions=20, centroids=20)))
            )
        ),
        label='N = 20, K = 20',
        paper=[71.4, 95.2, 80.5],
    ),
    n16_k8=dict(
        override=dict(
            model=dict(
                similarity=dict(global_pooling=dict(pooling=dict(partitions=16, centroids=8)))
            )
        ),
        label='N = 16, K = 8',
        paper=[75.3, 97.1, 82.9],
    ),
    n16_k16=dict(
        override=dict(
            model=dict(
                similarity=dict(global_pooling=dict(pooling=dict(partitions=16, centroids=16)))
            )
        ),
        label='N = 16, K = 16',
        paper=[74.1, 96.5, 82.3],
    ),
    n16_k20=dict(
        override=dict(
            model=dict(
                similarity=dict(global_pooling=dict(pooling=dict(partitions=16, centroids=20)))
            )
        ),
        label='N = 16, K = 20',
        paper=[73.5, 96.9, 82.3],
    ),
    n8_k8=dict(
        override=dict(
            model=dict(
                similarity=dict(global_pooling=dict(pooling=dict(partitions=8, centroids=8)))
            )
        ),
        label='N = 8, K = 8',
        paper=[74.0, 97.1, 82.6],
    ),
    n8_k16=dict(
        override=dict(
            model=dict(
                similarity=dict(global_pooling=dict(pooling=dict(partitions=8, centroids=16)))
            )
        ),
        label='N = 8, K = 16',
        paper=[74.3, 96.4, 82.0],
    ),
    n8_k20=dict(
        override=dict(
            model=dict(
                similarity=dict(global_pooling=dict(pooling=dict(partitions=8, centroids=20)))
            )
        ),
        label='N = 8, K = 20',
        paper=[74.7, 96.7, 82.5],
    ),
)
