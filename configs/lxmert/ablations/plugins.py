# Two plug-ins of other papers in LXMERT. No table of the paper.
_base_ = '../../_base_/ablations/lxmert.py'

title = 'LXMERT: with the plug-ins of other papers'

measured = {
    'VQA': ('vqa', 'vqa/overall'),
    'GQA': ('gqa', 'gqa/accuracy'),
    'NLVR2': ('nlvr2', 'accuracy'),
}
columns = {'shapes': measured, 'full': measured}

paper_columns = []
rows = dict(
    full=dict(label='as it is'),
    ace_rpe=dict(label='ACE-RPE'),
    tte_post=dict(label='token types, LayerScale'),
)
