# Retrieval on photographs, and what the position inside a small fusion encoder adds to vectors. All
# rows of a seed re-rank the candidates of the same vectors. No table of the paper.
group = 'acerpe_photographs'
title = 'Photographs: re-ranking by a fusion encoder'
reference = 'ace_rpe'  # retrieval_flickr8k_grid.py

position = ['model.backbone.position', 'model.heads']
vectors = dict(config='configs/acerpe/pretrain_flickr8k_grid.py', takes=[])
retrieval = dict(
    config='configs/acerpe/retrieval_flickr8k_grid.py', after='vectors', takes=position
)
tests = dict(
    flowers=dict(tests='vectors', config='configs/acerpe/zero_shot_flowers_grid.py'),
    entailment=dict(
        config='configs/acerpe/snli_ve_flickr8k_grid.py', after='vectors', takes=[]
    ),
)
with_coco = {
    'train_dataloader.dataset.ann_file': [
        'flickr8k/albef/train.json',
        'coco_mini/albef/train.json',
    ],
    'train_dataloader.dataset.pipeline.0.store': [
        'data/flickr8k/lite0_lite2',
        'data/coco_mini/lite0_lite2',
    ],
    'optim_wrapper.dtype': 'bfloat16',  # half the time, on a CPU that has it
}
presets = {
    'flickr8k': dict(
        label='on Flickr8k, trained on its photographs alone',
        stages=dict(vectors=vectors, retrieval=retrieval, **tests),
    ),
    'flickr8k_coco': dict(
        label='on Flickr8k, trained on its photographs and some of COCO',
        stages=dict(
            vectors=dict(vectors, options=with_coco),
            retrieval=dict(retrieval, options=with_coco),
            **tests,
        ),
    ),
}
figures = {
    'vectors: TR@1': ('retrieval', 'first_stage/i2t/R@1'),
    'vectors: IR@1': ('retrieval', 'first_stage/t2i/R@1'),
    'vectors: mean recall': ('retrieval', 'first_stage/mean_recall'),
    're-ranked: TR@1': ('retrieval', 'i2t/R@1'),
    're-ranked: IR@1': ('retrieval', 't2i/R@1'),
    're-ranked: mean recall': ('retrieval', 'mean_recall'),
    'entailment': ('entailment', 'accuracy'),
    'flowers': ('flowers', 'top1'),
}
columns = {'flickr8k': figures, 'flickr8k_coco': figures}
paper_columns = []

# "alone" is without the contrast of words and cells, as the rows of the paper's Table 1 are. The
# vectors stay as they are, so that L_ace trains the adapters by its token term alone.
alone = dict(anchors=None)
ace = dict(anchors=dict(_delete_=True, type='AnchorHead', token_scale=50.0))
uniform = dict(type='UniformPosition')
rows = dict(
    none=dict(
        override=dict(
            model=dict(backbone=dict(position=dict(_delete_=True, type='NoPosition')), heads=alone)
        ),
        label='None',
    ),
    uniform_alone=dict(
        override=dict(model=dict(backbone=dict(position=uniform), heads=alone)), label='Uniform'
    ),
    ace_rpe_alone=dict(override=dict(model=dict(heads=alone)), label='ACE-RPE'),
    ace_rpe_lace=dict(override=dict(model=dict(heads=ace)), label='ACE-RPE + L_ace'),
    uniform=dict(
        override=dict(model=dict(backbone=dict(position=uniform))),
        label='Uniform, contrast of anchors',
    ),
    ace_rpe=dict(label='ACE-RPE, contrast of anchors'),
    # What wins where places are asked for (places.py).
    anchor_ape=dict(
        override=dict(model=dict(backbone=dict(position=dict(type='AnchorAbsolutePosition')))),
        label='APE through anchors, contrast of anchors',
    ),
)
