# The rows of Table 1 but APE + RPE, by skill (docs/tasks/skills.md): its pre-trainings, tested on
# minimal pairs. No table of the paper.
_base_ = '../../_base_/ablations/acerpe.py'

title = 'Cross-modal position, by skill'

columns = {
    'shapes': {
        'attribute': ('skills', 'fusion/attribute'),
        'relation': ('skills', 'fusion/relation'),
        'count': ('skills', 'fusion/count'),
        'binding': ('skills', 'fusion/binding'),
        'object': ('skills', 'fusion/object'),
        'mean': ('skills', 'fusion/mean'),
        'by vectors: mean': ('skills', 'vectors/mean'),
    },
}
paper_columns = []

rows = dict(
    none=dict(override=_base_.overrides.none, label='None'),
    ape=dict(override=_base_.overrides.ape, label='APE'),
    rpe=dict(override=_base_.overrides.rpe, label='RPE'),
    uniform=dict(override=_base_.overrides.uniform, label='Uniform'),
    ace_rpe=dict(override=_base_.overrides.ace_rpe, label='ACE-RPE'),
    ace_rpe_lace=dict(label='ACE-RPE + L_ace'),
)
