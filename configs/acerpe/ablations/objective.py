# The paper's whole objective beside the one of pretrain_shapes.py, and what has to change in it to
# learn on the embedded world. No table of the paper.
_base_ = '../../_base_/ablations/acerpe.py'

title = 'The objective of pre-training'
group = 'acerpe_objective'
reference = 'paper'

presets = dict(
    _delete_=True,
    shapes=dict(
        label='on the embedded world, before fine-tuning',
        stages=dict(
            contrast=_base_.presets.shapes.stages.contrast,
            pretrain=dict(
                config='configs/acerpe/pretrain_shapes_paper.py', after='contrast',
                takes=['model', 'custom_hooks'],
            ),
        ),
    ),
)
columns = {
    'shapes': {
        'by vectors: TR@1': ('pretrain', 'first_stage/i2t/R@1'),
        'by vectors: IR@1': ('pretrain', 'first_stage/t2i/R@1'),
        'by vectors: mean recall': ('pretrain', 'first_stage/mean_recall'),
        're-ranked: TR@1': ('pretrain', 'i2t/R@1'),
        're-ranked: IR@1': ('pretrain', 't2i/R@1'),
        're-ranked: mean recall': ('pretrain', 'mean_recall'),
    },
}
paper_columns = []

itc = dict(itc=dict(_delete_=True, type='ITCHead'))
rows = dict(
    paper=dict(label="the paper's"),
    # One change each.
    hinge_50=dict(
        override=dict(model=dict(heads=dict(ace=dict(scale=50.0)))), label='λ = 50 in the hinge'
    ),
    token_50=dict(
        override=dict(model=dict(heads=dict(ace=dict(token_scale=50.0)))),
        label='λ = 50 in the token term',
    ),
    with_itc=dict(override=dict(model=dict(heads=itc)), label='ITC beside L_ace'),
    # As pretrain_shapes.py, with as many steps as the others.
    shapes=dict(
        override=dict(
            model=dict(
                heads=dict(
                    itc, ace=dict(token_scale=50.0), itm=dict(hardness=0.1),
                    mim=dict(source='image_encoder'),
                ),
                queue_length=0,
                momentum=None,
            ),
            custom_hooks={'0': dict(alpha=0.0)},
        ),
        label='that of pretrain_shapes.py',
    ),
)
