# The rows of Table 1 by skill (docs/tasks/skills.md): one pre-training, tested on minimal pairs.
# No table of the paper.
_base_ = '../../_base_/ablations/acerpe.py'

title = 'Cross-modal position, by skill'
group = 'acerpe_skills'

presets = dict(
    _delete_=True,
    shapes=dict(
        label='on the embedded world',
        stages=dict(
            contrast=_base_.presets.shapes.stages.contrast,
            # That of the other tables, with another test.
            pretrain=dict(
                _base_.presets.shapes.stages.pretrain, config='configs/acerpe/skills_shapes.py'
            ),
        ),
    ),
)
columns = {
    'shapes': {
        'attribute': ('pretrain', 'fusion/attribute'),
        'relation': ('pretrain', 'fusion/relation'),
        'count': ('pretrain', 'fusion/count'),
        'binding': ('pretrain', 'fusion/binding'),
        'object': ('pretrain', 'fusion/object'),
        'mean': ('pretrain', 'fusion/mean'),
        'by vectors: mean': ('pretrain', 'vectors/mean'),
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
