# Tables 1 and 2 of the note on token types, and the row that they lack: after the encoders without
# LayerScale. COCO and Flickr30K are the mean of the six recalls.
group = 'emkum'
title = 'EMKUM, Tables 1 and 2: token types'
reference = 'tte_post'  # the method; rows whose configs equal its configs share its runs

types = ['model.token_type']
presets = {
    'shapes': dict(
        label='on the embedded world',
        stages=dict(shapes=dict(config='configs/emkum/tte_post_shapes.py', takes=types)),
    ),
    'coco_cc': dict(
        label='on COCO, CC3M and CC12M',
        gpus=2,  # 256 pairs each
        stages=dict(coco_cc=dict(config='configs/emkum/tte_post_coco_cc.py', takes=types)),
    ),
}
columns = {
    'shapes': {
        'zero-shot top-1': ('shapes', 'zero_shot/top1'),
        'zero-shot top-5': ('shapes', 'zero_shot/top5'),
        'mean recall': ('shapes', 'retrieval/mean_recall'),
        'TR@1': ('shapes', 'retrieval/i2t/R@1'),
        'IR@1': ('shapes', 'retrieval/t2i/R@1'),
    },
    'coco_cc': {
        'ImageNet top-1': ('coco_cc', 'imagenet/top1'),
        'ImageNet top-5': ('coco_cc', 'imagenet/top5'),
        'COCO': ('coco_cc', 'coco/mean_recall'),
        'Flickr30K': ('coco_cc', 'flickr30k/mean_recall'),
    },
}

paper_columns = ['ImageNet top-1', 'ImageNet top-5', 'COCO', 'Flickr30K']
rows = dict(
    # EMKUM: no token types.
    none=dict(
        override=dict(model=dict(token_type=None)),
        label='none',
        paper=[26.1, 50.4, 66.3, 77.83],
    ),
    # EMKUM_TTE: before the encoders' blocks, without LayerScale.
    tte_pre=dict(
        override=dict(model=dict(token_type=dict(position='pre_encoder', layer_scale=None))),
        label='before the encoders',
        paper=[25.6, 49.5, 66.0, 77.36],
    ),
    # After the encoders, without LayerScale.
    tte_post_noscale=dict(
        override=dict(model=dict(token_type=dict(layer_scale=None))),
        label='after the encoders',
        paper=[None, None, None, None],
    ),
    # EMKUM_TTE': after the encoders, with LayerScale.
    tte_post=dict(label='after the encoders, LayerScale', paper=[26.7, 50.9, 66.6, 78.09]),
)
