# Vectors of photographs and texts for zero-shot classification: MiniLM stays as it is, and beside
# captions the projections learn the names of ImageNet's 1,000 classes. What the CNN knows of a
# class is the vector of its weights, which comes with the package; no photograph of the class is
# needed. After the features of Flickr8k (docs/data.md), with your own copy of the names:
#   python tools/dataset_converters/class_names.py configs/acerpe/pretrain_flickr8k_queue.py \
#       data/zeroshot/imagenet_classes.json --out data/imagenet_names
#   python tools/train.py configs/acerpe/pretrain_flickr8k_names.py
# The test is zero-shot classification of flowers, whose features are computed for it, and
# retrieval on dev.
_base_ = [
    '../_base_/models/photographs_grid.py',
    '../_base_/datasets/flickr8k_grid.py',
    '../_base_/datasets/zero_shot_flowers.py',
    '../_base_/schedules/flickr8k_grid.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(image_encoder=dict(feature_dims=1280), text_encoder=dict(frozen=True)),
    heads=dict(itc=dict(type='ITCHead')),
)
load_regions, pack = _base_.pipeline
stores = ['data/flickr8k/lite0', 'data/imagenet_names/regions']
train_dataloader = dict(
    dataset=dict(
        ann_file=['flickr8k/albef/train.json', 'imagenet_names/train.json'],
        pipeline=[dict(load_regions, store=stores), pack],
    )
)
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=3)
find_unused_parameters = True  # adapters and fusion encoder
val_dataloader = None
val_evaluator = None
val_cfg = None
zero_shot = _base_.zero_shot
zero_shot['dataloader'].update(collate_fn=dict(type='xmodal.stack_regions'))
zero_shot['dataloader']['dataset'].update(
    pipeline=[load_regions, dict(pack, fields=('label',))]
)
test_cfg = dict(
    _delete_=True,
    type='CompositeEvalLoop',
    loops=dict(
        retrieval=dict(type='RetrievalLoop', scorer=dict(type='ITMReranker', topk=0)),
        zero_shot=zero_shot,
    ),
)
