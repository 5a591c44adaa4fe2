# What each pre-training task is worth, and all of them together: every row leaves out one. The
# columns "alone" are fine-tuned from random weights. No table of the paper.
_base_ = '../../_base_/ablations/lxmert.py'

title = 'LXMERT: each task of the pre-training left out'

measured = {
    'VQA alone': ('vqa_alone', 'vqa/overall'),
    'GQA alone': ('gqa_alone', 'gqa/accuracy'),
    'NLVR2 alone': ('nlvr2_alone', 'accuracy'),
    'VQA': ('vqa', 'vqa/overall'),
    'GQA': ('gqa', 'gqa/accuracy'),
    'NLVR2': ('nlvr2', 'accuracy'),
}
columns = {'shapes': measured, 'full': measured}

paper_columns = []
rows = dict(
    no_words=dict(label='without masked words'),
    no_vision=dict(label='without masked objects'),
    no_matching=dict(label='without matching'),
    p20=dict(label='without answers'),
    full=dict(label='all tasks'),
)
