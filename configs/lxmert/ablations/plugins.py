# Plug-ins of other papers in LXMERT: positions with the values of the paper of ACE-RPE, and EMKUM's
# token types. No table of the paper.
_base_ = '../../_base_/ablations/lxmert.py'

title = 'LXMERT: with the plug-ins of other papers'

columns = {'shapes': _base_.fine_tuned, 'full': _base_.fine_tuned}

paper_columns = []
rows = dict(
    full=dict(label='as it is'),
    # A region counts as the cell of a grid in which the centre of its box lies.
    ape=dict(
        override=dict(model=dict(backbone=dict(position=dict(type='AbsolutePosition')))),
        label='APE',
    ),
    rpe=dict(
        override=dict(model=dict(backbone=dict(position=dict(type='RelativePosition')))),
        label='RPE',
    ),
    uniform=dict(
        override=dict(model=dict(backbone=dict(position=dict(type='UniformPosition')))),
        label='Uniform',
    ),
    ace_rpe=dict(
        override=dict(model=dict(backbone=dict(position=dict(type='AnchorRelativePosition')))),
        label='ACE-RPE',
    ),
    # Token types with LayerScale after both encoders (EMKUM).
    tte_post=dict(
        override=dict(
            model=dict(
                backbone=dict(
                    token_type=dict(
                        type='TokenTypeEmbedding', position='post_encoder', layer_scale=1e-5
                    )
                )
            )
        ),
        label='token types, LayerScale',
    ),
)
