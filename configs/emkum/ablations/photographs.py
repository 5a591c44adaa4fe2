# EMKUM's four kinds of token types between pretrained encoders, on photographs. Not in the note.
group = 'emkum_photographs'
title = 'EMKUM on photographs: token types'
reference = 'tte_post'  # tte_post_flickr8k.py

stages = dict(
    photographs=dict(config='configs/emkum/tte_post_flickr8k.py', takes=['model.token_type'])
)
with_coco = {
    'train_dataloader.dataset.ann_file': [
        'flickr8k/albef/train.json', 'coco_mini/albef/train.json',
    ],
    'train_dataloader.dataset.pipeline.0.store': ['data/flickr8k/lite0', 'data/coco_mini/lite0'],
}
presets = {
    'flickr8k': dict(label='on Flickr8k and flowers, trained on Flickr8k', stages=stages),
    'flickr8k_coco': dict(
        label='on Flickr8k and flowers, trained on Flickr8k and some of COCO',
        stages=dict(photographs=dict(stages['photographs'], options=with_coco)),
    ),
}
figures = {
    'TR@1': ('photographs', 'retrieval/i2t/R@1'),
    'IR@1': ('photographs', 'retrieval/t2i/R@1'),
    'mean recall': ('photographs', 'retrieval/mean_recall'),
    'flowers': ('photographs', 'zero_shot/top1'),
}
columns = {'flickr8k': figures, 'flickr8k_coco': figures}
paper_columns = []

rows = dict(
    none=dict(override=dict(model=dict(token_type=None)), label='none'),
    tte_pre=dict(
        override=dict(model=dict(token_type=dict(position='pre_encoder', layer_scale=None))),
        label='before the encoders',
    ),
    tte_post_noscale=dict(
        override=dict(model=dict(token_type=dict(layer_scale=None))), label='after the encoders'
    ),
    tte_post=dict(label='after the encoders, LayerScale'),
)
