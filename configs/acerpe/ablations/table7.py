# Table 7 (Sec. A.2): λ of the anchor loss, the threshold δ, and the number of groups G. The
# paper's defaults are λ = 2, δ = 0.05, G = 8; pretrain_shapes.py has other values for λ of the
# token term and for G.
_base_ = '../../_base_/ablations/acerpe.py'

title = 'ACE-RPE, Table 7: hyper-parameters, average recall'

columns = {
    'shapes': {
        'TR': ('retrieval', ['i2t/R@1', 'i2t/R@5', 'i2t/R@10']),
        'IR': ('retrieval', ['t2i/R@1', 't2i/R@5', 't2i/R@10']),
    },
    '4m': {
        'COCO TR': ('coco', ['i2t/R@1', 'i2t/R@5', 'i2t/R@10']),
        'COCO IR': ('coco', ['t2i/R@1', 't2i/R@5', 't2i/R@10']),
    },
}

paper_columns = ['COCO TR', 'COCO IR']
rows = {
    # λ in both terms of the anchor loss (Eqs. 1 and 2).
    'lambda_1': dict(
        override=dict(model=dict(heads=dict(ace=dict(scale=1.0, token_scale=1.0)))),
        label='λ = 1',
        paper=[85.9, 75.0],
    ),
    'lambda_2': dict(
        override=dict(model=dict(heads=dict(ace=dict(scale=2.0, token_scale=2.0)))),
        label='λ = 2',
        paper=[87.7, 76.8],
    ),
    'lambda_3': dict(
        override=dict(model=dict(heads=dict(ace=dict(scale=3.0, token_scale=3.0)))),
        label='λ = 3',
        paper=[87.6, 76.6],
    ),
    'lambda_4': dict(
        override=dict(model=dict(heads=dict(ace=dict(scale=4.0, token_scale=4.0)))),
        label='λ = 4',
        paper=[87.5, 76.6],
    ),
    # δ: the threshold of an anchor (Eq. 4) and the margin of the anchor loss (Eq. 2).
    'delta_0.01': dict(
        override=dict(
            model=dict(
                backbone=dict(position=dict(delta=0.01)), heads=dict(ace=dict(margin=0.01))
            )
        ),
        label='δ = 0.01',
        paper=[87.5, 76.5],
    ),
    'delta_0.05': dict(
        override=dict(
            model=dict(
                backbone=dict(position=dict(delta=0.05)), heads=dict(ace=dict(margin=0.05))
            )
        ),
        label='δ = 0.05',
        paper=[87.7, 76.8],
    ),
    'delta_0.1': dict(
        override=dict(
            model=dict(
                backbone=dict(position=dict(delta=0.1)), heads=dict(ace=dict(margin=0.1))
            )
        ),
        label='δ = 0.1',
        paper=[87.5, 76.7],
    ),
    'delta_0.2': dict(
        override=dict(
            model=dict(
                backbone=dict(position=dict(delta=0.2)), heads=dict(ace=dict(margin=0.2))
            )
        ),
        label='δ = 0.2',
        paper=[87.6, 76.7],
    ),
    # G: the groups of dimensions that ACE-RPE has weights for.
    'groups_1': dict(
        override=dict(
            model=dict(backbone=dict(position=dict(groups=1))),
            load_from_ignore=_base_.own_w,
        ),
        label='G = 1',
        paper=[87.1, 76.3],
    ),
    'groups_4': dict(
        override=dict(model=dict(backbone=dict(position=dict(groups=4)))),
        label='G = 4',
        paper=[87.6, 76.6],
    ),
    'groups_8': dict(
        override=dict(
            model=dict(backbone=dict(position=dict(groups=8))),
            load_from_ignore=_base_.own_w,
        ),
        label='G = 8',
        paper=[87.7, 76.8],
    ),
    'groups_16': dict(
        override=dict(
            model=dict(backbone=dict(position=dict(groups=16))),
            load_from_ignore=_base_.own_w,
        ),
        label='G = 16',
        paper=[87.7, 76.9],
    ),
    'groups_32': dict(
        override=dict(
            model=dict(backbone=dict(position=dict(groups=32))),
            load_from_ignore=_base_.own_w,
        ),
        label='G = 32',
        paper=[87.6, 76.8],
    ),
}
