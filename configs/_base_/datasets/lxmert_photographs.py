# LXMERT's pre-training data from a few photographs (docs/lxmert.md): captions of Flickr8k and COCO,
# questions that these answer, and questions of VQA v2 on some of COCO's, as grid features of a
# frozen EfficientNet-Lite0.
#   data/coco_mini/lxmert.json     by tools/dataset_converters/lxmert_pretrain.py
#   data/coco_mini/caption_questions.json     by tools/dataset_converters/caption_questions.py
#   data/{flickr8k,coco_mini}/lite0     by tools/dataset_converters/extract_regions.py
_base_ = '../loaders.py'

train_dataloader = dict(
    _base_.small_region_loaders.train,
    global_batch_size=128,
    dataset=dict(
        type='LxmertPretrainDataset',
        data_root='data/',
        ann_file=['coco_mini/lxmert.json', 'coco_mini/caption_questions.json'],
        max_words=30,
        pipeline=[
            dict(type='LoadRegions', store=['data/flickr8k/lite0', 'data/coco_mini/lite0']),
            dict(type='PackRegionText', fields=('answers', 'answer_weights')),
        ],
    ),
)
