# Two plug-ins of other papers in LXMERT. No table of the paper.
_base_ = '../../_base_/ablations/lxmert.py'

title = 'LXMERT: with the plug-ins of other papers'

columns = {'shapes': _base_.fine_tuned, 'full': _base_.fine_tuned}

paper_columns = []
rows = dict(
    full=dict(label='as it is'),
    # ACE-RPE with the values of its paper.
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
