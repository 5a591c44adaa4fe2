# Table 8 (Sec. A.3): ACE-RPE as a bias on the logits, or added to queries, keys and values.
_base_ = [
    '../../_base_/ablations/acerpe.py',
    '../../_base_/ablations/acerpe_appendix.py',
]

title = 'ACE-RPE, Table 8: bias and contextual mode'

rows = dict(
    # A scalar for each pair on the logits (Eq. 9).
    bias=dict(
        override=dict(model=dict(backbone=dict(position=dict(mode='bias')))),
        label='Bias',
        paper=[98.1, 93.4, 87.4, 76.6, 81.5, 81.6],
    ),
    ace_rpe_lace=dict(label='Contextual', paper=[98.3, 93.5, 87.7, 76.8, 81.7, 81.9]),
)
