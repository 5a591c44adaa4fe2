# Do anchors help that find what words mean? Rows of Table 1, and the contrast of anchors
# beside ITC from the first stage on. Uniform has the contrast without any location. No table of the
# paper.
_base_ = '../../_base_/ablations/acerpe.py'

title = 'Anchors by a contrast of words and patches'

columns = {
    'shapes': {
        'by vectors: mean recall': ('retrieval', 'first_stage/mean_recall'),
        're-ranked: TR@1': ('retrieval', 'i2t/R@1'),
        're-ranked: IR@1': ('retrieval', 't2i/R@1'),
        're-ranked: mean recall': ('retrieval', 'mean_recall'),
        'skills by vectors': ('skills', 'vectors/mean'),
        'skills by fusion': ('skills', 'fusion/mean'),
        'binding': ('skills', 'fusion/binding'),
        'relation': ('skills', 'fusion/relation'),
    },
}
paper_columns = []

anchors = ['model.heads.anchors']
presets = dict(
    shapes=dict(
        stages=dict(
            contrast=dict(takes=anchors), retrieval=dict(takes=[*_base_.position, *anchors])
        )
    ),
)
anchored = dict(_base_.without_lace, anchors=dict(type='AnchorContrastHead'))
rows = dict(
    none=dict(override=_base_.overrides.none, label='None'),
    ace_rpe=dict(override=_base_.overrides.ace_rpe, label='ACE-RPE'),
    uniform_anchored=dict(
        override=dict(
            model=dict(backbone=dict(position=dict(type='UniformPosition')), heads=anchored)
        ),
        label='Uniform, contrast of anchors',
    ),
    ace_rpe_anchored=dict(
        override=dict(model=dict(heads=anchored)), label='ACE-RPE, contrast of anchors'
    ),
)
