# Five heads or six: python tools/ablate.py projects/token_contrast/ablations/heads.py
title = 'Token-wise contrast added to the five heads of pretrain_shapes.py'
group = 'token_contrast'
presets = dict(
    shapes=dict(
        label='on the embedded world, re-ranked',
        stages=dict(
            pretrain=dict(
                config='configs/acerpe/pretrain_shapes.py', takes=['custom_imports', 'model']
            ),
            skills=dict(tests='pretrain', config='configs/acerpe/skills_shapes.py'),
        ),
    ),
)
columns = dict(
    shapes={
        'TR@1': ('pretrain', 'i2t/R@1'),
        'IR@1': ('pretrain', 't2i/R@1'),
        'mean recall': ('pretrain', 'mean_recall'),
        'relation': ('skills', 'fusion/relation'),
        'binding': ('skills', 'fusion/binding'),
    },
)
paper_columns = []
rows = dict(
    five=dict(label='five heads'),
    six=dict(
        override=dict(
            custom_imports=dict(imports=['projects.token_contrast.token_contrast']),
            model=dict(heads=dict(tokens=dict(type='TokenContrastHead'))),
        ),
        label='with token-wise contrast',
    ),
)
