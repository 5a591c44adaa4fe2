# Two plug-ins of other papers in LXMERT. No table of the paper.
_base_ = '../../_base_/ablations/lxmert.py'

title = 'LXMERT: with the plug-ins of other papers'

columns = {'shapes': _base_.fine_tuned, 'full': _base_.fine_tuned}

paper_columns = []
rows = dict(
    full=dict(label='as it is'),
    ace_rpe=dict(label='ACE-RPE'),
    tte_post=dict(label='token types, LayerScale'),
)
