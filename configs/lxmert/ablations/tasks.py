# The contribution of each pre-training task: every row but the last leaves one out. The columns
# "alone" are fine-tuned from random weights. No table of the paper.
_base_ = '../../_base_/ablations/lxmert.py'

title = 'LXMERT: each task of the pre-training left out'

by_kind = {  # of the embedded world; the benchmarks' tests give other parts
    'VQA, yes/no': ('vqa', 'vqa/yes/no'),
    'VQA, number': ('vqa', 'vqa/number'),
    'VQA, other': ('vqa', 'vqa/other'),
    'GQA, binary': ('gqa', 'gqa/binary'),
    'GQA, open': ('gqa', 'gqa/open'),
    'GQA, consistency': ('gqa', 'gqa/consistency'),
    'NLVR2, consistency': ('nlvr2', 'consistency'),
}
columns = {
    preset: {f'{name} alone': (f'{stage}_alone', key) for name, (stage, key) in shown.items()}
    | shown
    for preset, shown in (
        ('shapes', {**_base_.fine_tuned, **by_kind}), ('full', _base_.fine_tuned),
    )
}

paper_columns = []
rows = dict(
    # Without the masked cross-modality language model.
    no_words=dict(
        override=dict(model=dict(heads=dict(mlm=None))), label='without masked words'
    ),
    no_vision=dict(override=_base_.overrides.no_vision, label='without masked objects'),
    # Without cross-modality matching: every text is the one of its image.
    no_matching=dict(
        override=dict(model=dict(heads=dict(matching=None))), label='without matching'
    ),
    p20=dict(override=_base_.overrides.p20, label='without answers'),
    full=dict(label='all tasks'),
)
