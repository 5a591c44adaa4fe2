# Table 9 (Sec. A.4): ACE-RPE on queries, keys and values separately.
_base_ = [
    '../../_base_/ablations/acerpe.py',
    '../../_base_/ablations/acerpe_appendix.py',
]

title = 'ACE-RPE, Table 9: query, key and value'

rows = dict(
    none=dict(
        override=_base_.overrides.none,
        label='none of them',
        paper=[97.8, 92.7, 86.5, 75.6, 79.9, 80.5],
    ),
    query=dict(
        override=dict(model=dict(backbone=dict(position=dict(key=False, value=False)))),
        label='query',
        paper=[98.1, 93.3, 87.4, 76.6, 81.4, 81.6],
    ),
    key=dict(
        override=dict(model=dict(backbone=dict(position=dict(query=False, value=False)))),
        label='key',
        paper=[98.1, 93.2, 87.5, 76.7, 81.4, 81.5],
    ),
    value=dict(
        override=dict(model=dict(backbone=dict(position=dict(query=False, key=False)))),
        label='value',
        paper=[97.8, 92.8, 86.7, 76.0, 80.7, 81.0],
    ),
    query_key=dict(
        override=dict(model=dict(backbone=dict(position=dict(value=False)))),
        label='query, key',
        paper=[98.2, 93.3, 87.5, 76.6, 81.6, 81.8],
    ),
    ace_rpe_lace=dict(label='query, key, value', paper=[98.3, 93.5, 87.7, 76.8, 81.7, 81.9]),
)
