# Table 5 (Sec. 4.4): weakly supervised grounding on RefCOCO+. The paper has the rows of ACE-RPE,
# and no figure of the model without a position.
_base_ = '../../_base_/ablations/acerpe.py'

title = 'ACE-RPE, Table 5: weakly supervised grounding on RefCOCO+'

measured = {
    'val': ('grounding', 'val/accuracy'),
    'testA': ('grounding', 'testA/accuracy'),
    'testB': ('grounding', 'testB/accuracy'),
}
columns = {'shapes': measured, '4m': measured, '14m': measured}

paper_columns = ['val', 'testA', 'testB']
rows = dict(
    none=dict(override=_base_.overrides.none, label='None'),
    ace_rpe=dict(
        override=_base_.overrides.ace_rpe, label='ACE-RPE', paper=[59.4, 66.6, 47.1]
    ),
    ace_rpe_lace=dict(label='ACE-RPE + L_ace', paper=[60.1, 67.5, 47.9]),
    ace_rpe_lace_14m=dict(
        preset='14m', label='ACE-RPE + L_ace, 14M', paper=[60.5, 67.9, 48.2]
    ),
)
