# Table 6 (Sec. A.1): one W for all fusion layers, or one each.
_base_ = [
    '../../_base_/ablations/acerpe.py',
    '../../_base_/ablations/acerpe_appendix.py',
]

title = 'ACE-RPE, Table 6: shared and unshared'

rows = dict(
    shared=dict(
        override=dict(
            model=dict(backbone=dict(position=dict(shared=True))),
            load_from_ignore=_base_.own_w,
        ),
        label='Shared',
        paper=[98.1, 93.2, 87.4, 76.7, 81.2, 81.5],
    ),
    ace_rpe_lace=dict(label='Unshared', paper=[98.3, 93.5, 87.7, 76.8, 81.7, 81.9]),
)
