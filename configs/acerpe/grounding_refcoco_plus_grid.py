# Weakly supervised grounding on RefCOCO+ by the similarities of words and cells that
# retrieval_flickr8k_grid.py trains on captions. There is nothing to train:
#   python tools/dataset_converters/extract_regions.py configs/acerpe/pretrain_flickr8k_grid.py \
#       data/coco/train2014 --out data/coco/lite0_lite2
#   python tools/test.py configs/acerpe/grounding_refcoco_plus_grid.py \
#       work_dirs/retrieval_flickr8k_grid/epoch_2.pth
_base_ = './grounding_flickr8k_grid.py'

test_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='ReferDataset',
        data_root='data/',
        data_prefix=dict(image='coco/train2014'),
        ann_file='refcoco+/refs(unc).p',
        instances='refcoco+/instances.json',
        proposals='refcoco+/dets.json',  # None: the annotated boxes of the image
        split=['val', 'testA', 'testB'],
        pipeline=[
            dict(_base_.pipeline[0], store='data/coco/lite0_lite2'),
            _base_.pipeline[1],
        ],
        test_mode=True,
    ),
)
