# Words that find their own cells on photographs: a contrast of the words of one caption, and words
# that the text encoder's later layers have not yet mixed. All rows of a seed re-rank the candidates
# of the same vectors. No table of the paper.
group = 'acerpe_photographs_words'
title = 'Photographs: words that find their own cells'
reference = 'anchors'  # retrieval_flickr8k_grid.py

half = {'optim_wrapper.dtype': 'bfloat16'}  # half the time, on a CPU that has it
presets = {
    'flickr8k': dict(
        label='on Flickr8k, trained on its photographs alone',
        stages=dict(
            vectors=dict(
                config='configs/acerpe/pretrain_flickr8k_grid.py', takes=[], options=half
            ),
            retrieval=dict(
                config='configs/acerpe/retrieval_flickr8k_grid.py',
                after='vectors',
                takes=['model.backbone.word_layers', 'model.heads'],
                options=half,
            ),
        ),
    ),
}
columns = {
    'flickr8k': {
        'vectors: mean recall': ('retrieval', 'first_stage/mean_recall'),
        're-ranked: mean recall': ('retrieval', 'mean_recall'),
    },
}
paper_columns = []

contrast = dict(words=dict(type='WordContrastHead'))
rows = dict(
    anchors=dict(label='contrast of anchors'),
    words=dict(
        override=dict(model=dict(heads=contrast)), label='contrast of anchors and of words'
    ),
    first_layer=dict(
        override=dict(model=dict(backbone=dict(word_layers=1))),
        label="contrast of anchors, words of BERT's first layer",
    ),
    both=dict(
        override=dict(model=dict(backbone=dict(word_layers=1), heads=contrast)),
        label="contrast of anchors and of words, of BERT's first layer",
    ),
)
